//! Wall and processor time of one region.

use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

/// How long a region took, in microseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Elapsed {
    /// Wall time.
    pub wall_us: f64,
    /// User and system time of all threads of the process.
    pub cpu_us: f64,
}

/// A running clock. The processor clock is read outside the wall clock's region.
pub struct Clock {
    cpu_us: f64,
    wall: Instant,
}

impl Clock {
    /// Starts.
    #[inline]
    pub fn start() -> Clock {
        let cpu_us = cpu_us();
        Clock { cpu_us, wall: Instant::now() }
    }

    /// Stops.
    #[inline]
    pub fn stop(self) -> Elapsed {
        let wall_us = self.wall.elapsed().as_nanos() as f64 / 1e3;
        Elapsed { wall_us, cpu_us: cpu_us() - self.cpu_us }
    }
}

fn cpu_us() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}
