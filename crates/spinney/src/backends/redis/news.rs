//! Waiting for commits: one subscription for all who wait, and looking from time to time where there
//! is none.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use redis::RedisResult;

use super::link::Links;
use crate::network::server::State;

/// How often who waits looks where nothing is told.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// How long the subscription is kept when nobody waits.
const LINGER: Duration = Duration::from_secs(10);

/// How often the subscriber looks whether anybody waits, and tries anew.
const PAUSE: Duration = Duration::from_millis(500);

/// What is known of commits without asking.
pub(super) struct News {
    heard: Mutex<Heard>,
    changed: Condvar,
}

struct Heard {
    /// The newest state that was told of.
    state: State,
    subscriber: Subscriber,
    /// Until when somebody waits.
    wanted_until: Instant,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Subscriber {
    /// There is no thread.
    None,
    /// There is one, and nothing is told yet, or not any more.
    Deaf,
    /// Each commit is told.
    Listens,
}

impl News {
    pub fn new() -> News {
        let heard = Heard { state: 0, subscriber: Subscriber::None, wanted_until: Instant::now() };
        News { heard: Mutex::new(heard), changed: Condvar::new() }
    }

    /// Returns when there may be a newer state than `known`, at the latest when the time is up.
    pub fn wait(self: &Arc<Self>, links: &Arc<Links>, known: State, timeout: Duration) {
        let deadline = Instant::now() + timeout;
        let mut heard = self.lock();
        heard.wanted_until = heard.wanted_until.max(deadline + LINGER);
        if heard.subscriber == Subscriber::None && self.start(links) {
            heard.subscriber = Subscriber::Deaf;
        }
        while heard.state <= known {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            if heard.subscriber != Subscriber::Listens {
                // Whoever waits looks by itself, and comes back.
                drop(self.changed.wait_timeout(heard, left.min(LOOK_EVERY)));
                return;
            }
            let woken = self.changed.wait_timeout(heard, left);
            heard = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(self: &Arc<Self>, links: &Arc<Links>) -> bool {
        let (news, links) = (Arc::downgrade(self), Arc::clone(links));
        let subscriber = move || {
            // The store holds the news; the thread ends with it.
            let is_wanted = || {
                let Some(news) = news.upgrade() else { return false };
                let mut heard = news.lock();
                let is_wanted = heard.wanted_until > Instant::now();
                if !is_wanted {
                    heard.subscriber = Subscriber::None;
                }
                is_wanted
            };
            let tell = |subscriber, state| {
                let Some(news) = news.upgrade() else { return };
                let mut heard = news.lock();
                heard.subscriber = subscriber;
                heard.state = heard.state.max(state);
                news.changed.notify_all();
            };
            while is_wanted() {
                if let Err(error) = listen(&links, &is_wanted, &tell) {
                    log::debug!("{}: commits are not told: {error}", links.address);
                    tell(Subscriber::Deaf, 0);
                    thread::sleep(PAUSE);
                }
            }
        };
        thread::Builder::new().name("spinney-news".to_owned()).spawn(subscriber).is_ok()
    }
}

/// Tells of commits until nobody wants to know, or the connection is lost.
fn listen(
    links: &Links,
    is_wanted: &dyn Fn() -> bool,
    tell: &dyn Fn(Subscriber, State),
) -> RedisResult<()> {
    let mut connection = links.connect()?;
    let mut subscription = connection.as_pubsub();
    subscription.subscribe(links.channel())?;
    subscription.set_read_timeout(Some(PAUSE))?;
    // What was committed before is told by nobody.
    let newest = links.try_command(&["HGET", &links.keys()[0], "state"]);
    let newest = newest.map_or(Ok(redis::Value::Int(i64::MAX)), |state| state)?;
    tell(Subscriber::Listens, redis::from_redis_value(newest)?);
    while is_wanted() {
        match subscription.get_message() {
            Ok(message) => tell(Subscriber::Listens, message.get_payload().unwrap_or(0)),
            Err(error) if error.is_timeout() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
