//! Where a store is. Owns what URLs of this backend say besides what the driver reads, and never
//! shows a user or a password.

use std::time::Duration;

use mongodb::error::ErrorKind as DriverError;
use mongodb::options::{
    Acknowledgment, ClientOptions, ReadConcern, ReadPreference, SelectionCriteria, WriteConcern,
};
use spinney_core::{Error, Result};

/// The database of a URL that names none.
const DATABASE: &str = "spinney";

/// The store of a URL that names none.
const STORE: &str = "spinney";

/// What a URL looks like.
const FORM: &str = "`mongodb://[user:password@]host[:port][/database][?store=NAME]`";

/// Bytes of a store's name; MongoDB allows 120 for a collection's with all that belongs to it.
const STORE_LEN_MAX: usize = 64;

/// A store of a database.
pub struct Place {
    /// How to connect.
    pub options: ClientOptions,
    /// The name of the database.
    pub database: String,
    /// The name of the store, with which its collections begin.
    pub store: String,
    /// All this in an error: without user, password and options.
    pub shown: String,
}

impl Place {
    /// Reads a URL; for `mongodb+srv:` that asks the name service.
    ///
    /// # Errors
    /// `InvalidInput` for a URL that the driver or this backend does not understand, `Io` when a name
    /// cannot be resolved.
    pub async fn parse(url: &str, timeout: Duration) -> Result<Place> {
        let (url, store) = take_store(url)?;
        let mut options = parse_options(&url).await?;
        let database = options.default_database.clone().unwrap_or_else(|| DATABASE.to_owned());
        let shown = format!("{}/{database}?store={store}", without_user(&hosts(&url)));
        options.app_name.get_or_insert_with(|| "spinney".to_owned());
        // Less than for an answer, so that it is known that nothing was sent.
        options.server_selection_timeout = Some(timeout - timeout / 8);
        options.connect_timeout = Some(timeout);
        // Whoever calls sends again what was lost; it knows for how long.
        options.retry_reads = Some(false);
        options.retry_writes = Some(false);
        options.selection_criteria =
            Some(SelectionCriteria::ReadPreference(ReadPreference::Primary));
        options.read_concern = Some(ReadConcern::majority());
        let concern = options.write_concern.get_or_insert_default();
        if concern.w == Some(Acknowledgment::Nodes(0)) {
            return Err(Error::invalid_input(format!(
                "{shown}: `w=0` leaves commits without an answer; take it out of the URL"
            )));
        }
        concern.w.get_or_insert(Acknowledgment::Majority);
        concern.journal.get_or_insert(true);
        Ok(Place { options, database, store, shown })
    }

    /// Why commits may not survive a power failure, as far as the URL says.
    pub fn against_durable(&self) -> Option<&'static str> {
        let WriteConcern { w, journal, .. } = self.options.write_concern.as_ref()?;
        if *journal == Some(false) {
            return Some("`journal=false` in the URL");
        }
        match w {
            Some(Acknowledgment::Majority | Acknowledgment::Custom(_)) | None => None,
            Some(_) => Some("a number as `w` in the URL"),
        }
    }
}

/// Takes out of a URL what the driver would refuse.
fn take_store(url: &str) -> Result<(String, String)> {
    let Some((rest, options)) = url.split_once('?') else {
        return Ok((url.to_owned(), STORE.to_owned()));
    };
    let mut store = STORE;
    let mut others = Vec::new();
    for option in options.split('&') {
        match option.split_once('=') {
            Some(("store", name)) => store = name,
            _ => others.push(option),
        }
    }
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if store.is_empty() || store.len() > STORE_LEN_MAX || !store.bytes().all(is_name) {
        return Err(Error::invalid_input(format!(
            "`store={store}`: the name of a store has 1 to {STORE_LEN_MAX} letters, digits, `-` or `_`"
        )));
    }
    let others = others.join("&");
    let mark = if others.is_empty() { "" } else { "?" };
    Ok((format!("{rest}{mark}{others}"), store.to_owned()))
}

async fn parse_options(url: &str) -> Result<ClientOptions> {
    let error = match ClientOptions::parse(url).await {
        Ok(options) => return Ok(options),
        Err(error) => error,
    };
    // What the driver says of a wrong URL may hold a part of the password; what it says of the same
    // URL without one cannot.
    let open = without_user(url);
    if open == url {
        return Err(unreadable(url, &error));
    }
    match ClientOptions::parse(&open).await {
        Err(error) => Err(unreadable(&open, &error)),
        Ok(_) => Err(Error::invalid_input(format!(
            "{}: the user or the password cannot be read; write what is no letter or digit in them as % and two hexadecimal digits",
            hosts(&open)
        ))),
    }
}

fn unreadable(url: &str, error: &mongodb::error::Error) -> Error {
    let shown = hosts(&without_user(url));
    match &*error.kind {
        DriverError::InvalidArgument { message, .. } => {
            Error::invalid_input(format!("{shown}: {message}; write {FORM}"))
        }
        DriverError::DnsResolve { .. } => Error::io(format!(
            "{shown}: the name service knows no servers under this name; `mongodb+srv:` needs a name with an SRV record, \
             `mongodb:` that of a server"
        )),
        other => Error::io(format!("{shown}: {other}")),
    }
}

/// A URL up to the database.
fn hosts(url: &str) -> String {
    let start = url.find("://").map_or(0, |at| at + 3);
    let after_user = url.rfind('@').map_or(start, |at| at + 1);
    let len = url[after_user..].find(['/', '?']).unwrap_or(url.len() - after_user);
    url[..after_user + len].to_owned()
}

/// A URL without user and password; wherever the last `@` is, since a wrong password may hold `/`.
fn without_user(url: &str) -> String {
    let start = url.find("://").map_or(0, |at| at + 3);
    match url.rfind('@') {
        Some(at) if at >= start => format!("{}{}", &url[..start], &url[at + 1..]),
        _ => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<Place> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(Place::parse(url, Duration::from_secs(1)))
    }

    #[test]
    fn names_come_from_the_url() {
        let place = parse("mongodb://ada:secret@one:1,two:2/trees?w=1&store=x-1").unwrap();
        assert_eq!((&*place.database, &*place.store), ("trees", "x-1"));
        assert_eq!(place.shown, "mongodb://one:1,two:2/trees?store=x-1");
        assert_eq!(place.against_durable(), Some("a number as `w` in the URL"));

        let place = parse("mongodb://localhost").unwrap();
        assert_eq!(place.shown, "mongodb://localhost/spinney?store=spinney");
        assert_eq!(place.against_durable(), None);
        let concern = place.options.write_concern.unwrap();
        assert_eq!((concern.w, concern.journal), (Some(Acknowledgment::Majority), Some(true)));

        let place = parse("mongodb://localhost/?journal=false").unwrap();
        assert_eq!(place.against_durable(), Some("`journal=false` in the URL"));
    }

    #[test]
    fn errors_of_urls_show_no_password() {
        for url in [
            "mongodb://ada:se/cret@localhost/trees",
            "mongodb://ada:se@cret@localhost:x/trees",
            "mongodb://ada:secret@localhost/trees?store=",
            "mongodb://ada:secret@localhost/trees?retryWites=true",
            "mongodb://ada:secret@localhost/trees?w=0",
        ] {
            let error = parse(url).err().unwrap_or_else(|| panic!("{url}"));
            assert_eq!(error.kind(), spinney_core::ErrorKind::InvalidInput, "{url}: {error}");
            assert!(!error.to_string().contains("cret"), "{error}");
            assert!(!error.to_string().contains("ada"), "{error}");
        }
    }
}
