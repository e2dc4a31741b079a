//! Asking a server again when its answer was lost.

use std::thread;
use std::time::{Duration, Instant};

use spinney_core::{Error, Result};

use super::server::{Failure, Reply};

/// The first pause; each one is twice as long, and somewhere between nothing and that.
const PAUSE_MIN: Duration = Duration::from_millis(8);

/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// Pauses that grow, with jitter, so that clients do not come back all at once.
pub struct Pauses {
    until: Instant,
    next: Duration,
    has_paused: bool,
}

impl Pauses {
    /// Pauses that end after a time.
    pub fn new(patience: Duration) -> Pauses {
        Pauses { until: Instant::now() + patience, next: PAUSE_MIN, has_paused: false }
    }

    /// Waits; `false` when the time is up, and it is not the first pause: a process that was stopped for
    /// longer, with the machine or by a signal, has lost its connection and not tried again.
    pub fn pause(&mut self) -> bool {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() && self.has_paused {
            return false;
        }
        self.has_paused = true;
        thread::sleep(self.next.mul_f64(fastrand::f64()).min(left));
        self.next = (self.next * 2).min(PAUSE_MAX);
        true
    }
}

/// Why a request was given up.
pub enum GivenUp {
    /// Nobody knows whether it was done.
    Unknown(Error),
    /// See [`Failure::Expired`].
    Expired,
    /// It was not done.
    Refused(Error),
}

/// Asks until there is an answer or patience ends.
pub fn ask<T>(
    patience: Duration,
    mut request: impl FnMut() -> Reply<T>,
) -> std::result::Result<T, GivenUp> {
    let mut pauses = Pauses::new(patience);
    let mut may_be_done = false;
    loop {
        let error = match request() {
            Ok(answer) => return Ok(answer),
            // It refuses to do it again, whatever became of it before.
            Err(Failure::Refused(error)) if may_be_done => return Err(GivenUp::Unknown(error)),
            Err(Failure::Refused(error)) => return Err(GivenUp::Refused(error)),
            Err(Failure::Expired) => return Err(GivenUp::Expired),
            Err(Failure::Undone(error)) => error,
            Err(Failure::Lost(error)) => {
                may_be_done = true;
                error
            }
        };
        log::debug!("asking again: {error}");
        if !pauses.pause() {
            return Err(match may_be_done {
                true => GivenUp::Unknown(error),
                false => GivenUp::Refused(error),
            });
        }
    }
}

/// As [`ask`], for what changes nothing and needs no lease.
///
/// # Errors
/// The server's.
pub fn ask_plainly<T>(patience: Duration, request: impl FnMut() -> Reply<T>) -> Result<T> {
    ask(patience, request).map_err(|given_up| match given_up {
        GivenUp::Unknown(error) | GivenUp::Refused(error) => error,
        GivenUp::Expired => expired(),
    })
}

/// A reader was slower than its lease.
pub fn expired() -> Error {
    Error::busy(
        "the server does not keep this state any longer: it was not read for longer than its lease, \
         while others wrote; read the store again, or open it with a longer lease",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_is_asked_once_more_however_long_it_took() {
        let lost = || Failure::Lost(Error::io("the connection was lost"));
        let mut answers = vec![Ok(1), Err(lost())];
        let answer = ask(Duration::ZERO, || answers.pop().expect("it is asked twice"));
        assert!(matches!(answer, Ok(1)));
        let mut tries = 0;
        let given_up = ask::<()>(Duration::ZERO, || {
            tries += 1;
            Err(lost())
        });
        assert!(matches!(given_up, Err(GivenUp::Unknown(_))));
        assert_eq!(tries, 2);
    }
}
