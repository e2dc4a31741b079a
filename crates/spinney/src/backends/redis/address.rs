//! Where a store is: the server, the database and the name, from the URL.

use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo};
use spinney_core::{Error, Result};

/// The name of a store whose URL gives none.
const NAME: &str = "spinney";

/// Bytes of the longest name.
const NAME_LEN_MAX: usize = 64;

/// Where a store is. What is shown of it never holds the user or the password.
#[derive(Clone)]
pub(super) struct Address {
    /// The server, the database, the user and the password.
    pub info: ConnectionInfo,
    /// The name of the store in the database.
    pub name: String,
}

impl Address {
    /// Reads `redis://[user:password@]host[:port][/database][?store=NAME]`, the same with `rediss:`
    /// for TLS, or `redis+unix:PATH[?db=N][&user=U][&pass=P][&store=NAME]`.
    ///
    /// # Errors
    /// `InvalidInput`, without what may be a password.
    pub fn parse(url: &str) -> Result<Address> {
        let scheme = url.split_once(':').map_or("redis", |(scheme, _)| scheme);
        let malformed = |what: &str| {
            Error::invalid_input(format!(
                "malformed `{scheme}:` URL: {what}; write `redis://[user:password@]host[:port][/database][?store=NAME]` \
                 or `redis+unix:PATH[?db=NUMBER][&store=NAME]`"
            ))
        };
        let Some(mut parsed) = redis::parse_redis_url(url) else {
            return Err(malformed("it cannot be read"));
        };
        let mut name = NAME.to_owned();
        let mut others = Vec::new();
        let known: &[&str] = match scheme {
            "redis+unix" => &["db", "user", "pass"],
            _ => &[],
        };
        for (option, value) in parsed.query_pairs() {
            match &*option {
                "store" => name = value.into_owned(),
                other if known.contains(&other) => {
                    others.push((option.into_owned(), value.into_owned()));
                }
                other => return Err(malformed(&format!("unknown option `{other}`"))),
            }
        }
        match others.is_empty() {
            true => parsed.set_query(None),
            false => drop(parsed.query_pairs_mut().clear().extend_pairs(others)),
        }
        check_name(&name)?;
        let info = parsed.into_connection_info().map_err(|error| {
            malformed(&error.to_string().replace(" - InvalidClientConfig", "").to_lowercase())
        })?;
        let tcp = info.tcp_settings().clone().set_nodelay(true);
        Ok(Address { info: info.set_tcp_settings(tcp), name })
    }

    /// The key of a part of the store. The braces keep all keys of a store in one slot of a cluster.
    pub fn key(&self, part: &str) -> String {
        format!("{{{}}}:{part}", self.name)
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let database = self.info.redis_settings().db();
        match self.info.addr() {
            ConnectionAddr::Tcp(host, port) => write!(f, "redis://{host}:{port}/{database}")?,
            ConnectionAddr::TcpTls { host, port, .. } => {
                write!(f, "rediss://{host}:{port}/{database}")?;
            }
            ConnectionAddr::Unix(path) => {
                write!(f, "redis+unix:{}?db={database}", path.display())?;
            }
            _ => f.write_str("redis")?,
        }
        if self.name != NAME {
            write!(f, ", store `{}`", self.name)?;
        }
        Ok(())
    }
}

fn check_name(name: &str) -> Result<()> {
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if !name.is_empty() && name.len() <= NAME_LEN_MAX && name.bytes().all(is_fit) {
        return Ok(());
    }
    Err(Error::invalid_input(format!(
        "a store on a server cannot be named `{}`; use 1 to {NAME_LEN_MAX} letters, digits, `-`, `_` and `.`",
        name.escape_debug()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(url: &str) -> String {
        match Address::parse(url) {
            Ok(address) => format!("{address} {}", address.key("meta")),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn urls_name_server_database_and_store() {
        assert_eq!(shown("redis://localhost"), "redis://localhost:6379/0 {spinney}:meta");
        assert_eq!(
            shown("redis://me:s3cret@10.0.0.1:7000/3?store=net.1"),
            "redis://10.0.0.1:7000/3, store `net.1` {net.1}:meta"
        );
        assert_eq!(
            shown("redis+unix:/run/redis.sock?db=2&pass=s3cret&store=a"),
            "redis+unix:/run/redis.sock?db=2, store `a` {a}:meta"
        );
        let address = Address::parse("redis+unix:/run/redis.sock?pass=a%26b").expect("a URL");
        assert_eq!(address.info.redis_settings().password(), Some("a&b"));
    }

    #[test]
    fn what_is_wrong_is_said_without_the_password() {
        for (url, part) in [
            ("redis://me:s3cret@", "cannot be read"),
            ("redis://me:s3cret@host/x", "database"),
            ("redis://me:s3cret@host/?stroe=a", "unknown option `stroe`"),
            ("redis://me:s3cret@host/?store=", "cannot be named ``"),
            ("redis://me:s3cret@host/?store={a}", "cannot be named `{a}`"),
            ("redis://:s3cret@host:99999", "cannot be read"),
        ] {
            let said = shown(url);
            assert!(said.contains(part) && !said.contains("s3cret"), "{url}: {said}");
        }
    }
}
