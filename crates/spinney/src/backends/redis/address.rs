//! Where a store is: the server, the database and the name, from the URL.

use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo};
use spinney_core::{Error, Path, Result};

use super::servers::slot_of;

/// The name of a store whose URL gives none.
const NAME: &str = "spinney";

/// Bytes of the longest name.
const NAME_LEN_MAX: usize = 64;

/// Where a store is. What is shown of it never holds the user or the password.
#[derive(Clone)]
pub(super) struct Address {
    /// The server, the database, the user and the password; of a cluster, the first server that the
    /// URL names.
    pub info: ConnectionInfo,
    /// All servers that the URL names.
    pub seeds: Vec<ConnectionAddr>,
    /// Whether the store is on whatever servers a cluster has, and each tree of it by itself.
    pub is_cluster: bool,
    /// The name of the store in the database.
    pub name: String,
    /// The tree, where each is by itself.
    pub tree: Option<String>,
}

impl Address {
    /// Reads `redis://[user:password@]host[:port][/database][?store=NAME]`, the same with `rediss:`
    /// for TLS, or `redis+unix:PATH[?db=N][&user=U][&pass=P][&store=NAME]`; or, with `redis+cluster:`
    /// or `rediss+cluster:`, `//[user:password@]host[:port][,host[:port]...][?store=NAME][&tree=NAME]`.
    ///
    /// # Errors
    /// `InvalidInput`, without what may be a password.
    pub fn parse(url: &str) -> Result<Address> {
        let scheme = url.split_once(':').map_or("redis", |(scheme, _)| scheme);
        let plain = scheme.strip_suffix("+cluster");
        let form = match plain {
            None => {
                "`redis://[user:password@]host[:port][/database][?store=NAME]` or \
                 `redis+unix:PATH[?db=NUMBER][&store=NAME]`"
            }
            Some(_) => {
                "`redis+cluster://[user:password@]host[:port][,host[:port]...][?store=NAME][&tree=NAME]`"
            }
        };
        let malformed = |what: &str| {
            Error::invalid_input(format!("malformed `{scheme}:` URL: {what}; write {form}"))
        };
        let urls = match plain {
            None => vec![url.to_owned()],
            Some(plain) => {
                each_server(url, plain).ok_or_else(|| malformed("it names no server"))?
            }
        };
        let mut address = Address::of_server(&urls[0], plain.is_some(), &malformed)?;
        for url in &urls[1..] {
            let other = Address::of_server(url, true, &malformed)?;
            address.seeds.extend(other.seeds);
        }
        Ok(address)
    }

    fn of_server(
        url: &str,
        is_cluster: bool,
        malformed: &dyn Fn(&str) -> Error,
    ) -> Result<Address> {
        let Some(mut parsed) = redis::parse_redis_url(url) else {
            return Err(malformed("it cannot be read"));
        };
        let (mut name, mut tree) = (NAME.to_owned(), None);
        let mut others = Vec::new();
        let known: &[&str] = match parsed.scheme() {
            "redis+unix" => &["db", "user", "pass"],
            _ => &[],
        };
        for (option, value) in parsed.query_pairs() {
            match &*option {
                "store" => name = value.into_owned(),
                "tree" if is_cluster => tree = Some(value.into_owned()),
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
        if is_cluster && info.redis_settings().db() != 0 {
            return Err(malformed("a cluster has no databases but the first"));
        }
        let tcp = info.tcp_settings().clone().set_nodelay(true);
        let (info, seeds) = (info.clone().set_tcp_settings(tcp), vec![info.addr().clone()]);
        Ok(Address { info, seeds, is_cluster, name, tree })
    }

    /// The same for a tree of the store.
    pub fn of_tree(&self, tree: &str) -> Address {
        Address { tree: Some(tree.to_owned()), ..self.clone() }
    }

    /// The same for what lists the trees.
    pub fn of_catalogue(&self) -> Address {
        Address { tree: None, ..self.clone() }
    }

    /// What decides about the slot: the store's name, or that and the tree's with `%` and `}` escaped,
    /// which would end it.
    fn tag(&self) -> String {
        match &self.tree {
            None => self.name.clone(),
            Some(tree) => {
                format!("{}/{}", self.name, tree.replace('%', "%25").replace('}', "%7D"))
            }
        }
    }

    /// The slot of a cluster that all keys are in.
    pub fn slot(&self) -> u16 {
        slot_of(&self.tag())
    }

    /// The key of a part of the store. The braces keep all keys in one slot of a cluster.
    pub fn key(&self, part: &str) -> String {
        format!("{{{}}}:{part}", self.tag())
    }
}

/// The URL of each server that a URL of a cluster names.
fn each_server(url: &str, scheme: &str) -> Option<Vec<String>> {
    let (_, rest) = url.split_once("://")?;
    let (authority, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let (credentials, hosts) = match authority.rfind('@') {
        Some(at) => authority.split_at(at + 1),
        None => ("", authority),
    };
    let of = |host| format!("{scheme}://{credentials}{host}{tail}");
    hosts.split(',').map(|host| (!host.is_empty()).then(|| of(host))).collect()
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let database = self.info.redis_settings().db();
        if self.is_cluster {
            let is_tls = matches!(self.info.addr(), ConnectionAddr::TcpTls { .. });
            let seeds: Vec<String> = self.seeds.iter().map(ToString::to_string).collect();
            write!(f, "redis{}+cluster://{}", if is_tls { "s" } else { "" }, seeds.join(","))?;
        } else {
            self.write_server(f, database)?;
        }
        if self.name != NAME {
            write!(f, ", store `{}`", self.name)?;
        }
        match &self.tree {
            Some(tree) => write!(f, ", tree {}", Path::root().child(tree)),
            None => Ok(()),
        }
    }
}

impl Address {
    fn write_server(&self, f: &mut std::fmt::Formatter<'_>, database: i64) -> std::fmt::Result {
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
    fn a_tree_of_a_cluster_has_keys_of_its_own() {
        let url = "rediss+cluster://me:s3c,ret@a,b:7001/?store=net";
        assert_eq!(shown(url), "rediss+cluster://a:6379,b:7001, store `net` {net}:meta");
        let address = Address::parse("redis+cluster://h?tree=a%7Db").expect("a URL");
        assert_eq!(address.to_string(), "redis+cluster://h:6379, tree `/a}b`");
        assert_eq!(address.key("meta"), "{spinney/a%7Db}:meta");
        assert_eq!(address.of_tree("50%").key("meta"), "{spinney/50%25}:meta");
        assert_eq!(address.of_catalogue().key("trees"), "{spinney}:trees");
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
            ("redis://:s3cret@host?tree=a", "unknown option `tree`"),
            ("redis+cluster://:s3cret@", "it names no server"),
            ("redis+cluster://:s3cret@a,,b", "it names no server"),
            ("redis+cluster://:s3cret@a,b/3", "no databases but the first"),
        ] {
            let said = shown(url);
            assert!(said.contains(part) && !said.contains("s3cret"), "{url}: {said}");
        }
    }
}
