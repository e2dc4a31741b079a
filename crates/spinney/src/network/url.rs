//! URLs of servers as they may be shown.

/// A URL without what may be a password, for errors, logs and people.
///
/// That is what stands behind a user's name, up to the last `@`, since a password that was not escaped may hold what ends
/// a host; and the values of options that are called so.
pub fn redacted(url: &str) -> String {
    let (front, options) = url.split_once('?').map_or((url, None), |(url, rest)| (url, Some(rest)));
    let start = front.find("://").map(|at| at + 3).or(front.find(':').map(|at| at + 1));
    let (scheme, rest) = front.split_at(start.unwrap_or(0));
    let place = match rest.rsplit_once('@') {
        Some((credentials, place)) => match credentials.split_once(':') {
            Some((user, _)) => format!("{user}:***@{place}"),
            None => rest.to_owned(),
        },
        // It is in the middle of one, then.
        None if options.is_some_and(|options| options.contains('@')) => "***".to_owned(),
        None => rest.to_owned(),
    };
    match options {
        None => format!("{scheme}{place}"),
        Some(options) => {
            let shown: Vec<String> = options.split('&').map(redacted_option).collect();
            format!("{scheme}{place}?{}", shown.join("&"))
        }
    }
}

fn redacted_option(option: &str) -> String {
    let is_secret = |name: &str| {
        let name = name.to_ascii_lowercase();
        ["pass", "secret", "token", "authmechanismproperties"]
            .iter()
            .any(|part| name.contains(part))
    };
    match option.split_once('=') {
        Some((name, _)) if is_secret(name) => format!("{name}=***"),
        Some(_) => option.to_owned(),
        None => "***".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::redacted;

    #[test]
    fn passwords_are_not_shown() {
        for (url, shown) in [
            ("redis://ada:s3cret@h:1/2?store=x", "redis://ada:***@h:1/2?store=x"),
            ("redis://:s3:cr@t@h", "redis://:***@h"),
            ("redis://h/@x:y", "redis://h/@x:y"),
            ("mongodb://ada@h/db", "mongodb://ada@h/db"),
            ("fjall:dir", "fjall:dir"),
            ("some/dir", "some/dir"),
            ("redis+unix:/run/r.sock?pass=s3cret&db=2", "redis+unix:/run/r.sock?pass=***&db=2"),
            ("redis+unix:/run/r.sock?db=2&pass=s3cr@t", "redis+unix:***?db=2&pass=***"),
            ("mongodb://ada:s3/cret@h/db", "mongodb://ada:***@h/db"),
            ("mongodb://ada:s3?cret@h/db", "mongodb://***?***"),
            ("redis:ada:s3cret@h", "redis:ada:***@h"),
            (
                "mongodb://h/?authMechanismProperties=AWS_SESSION_TOKEN:s3&w=1&proxyPassword=cret",
                "mongodb://h/?authMechanismProperties=***&w=1&proxyPassword=***",
            ),
        ] {
            assert_eq!(redacted(url), shown);
        }
    }
}
