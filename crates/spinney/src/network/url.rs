//! URLs of servers as they may be shown.

/// A URL without its password, for errors and logs.
pub fn redacted(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let authority_len = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, behind) = rest.split_at(authority_len);
    match authority.rsplit_once('@') {
        Some((credentials, host)) => {
            let user = credentials.split_once(':').map_or(credentials, |(user, _)| user);
            let is_password = credentials.contains(':');
            let mark = if is_password { ":***" } else { "" };
            format!("{scheme}://{user}{mark}@{host}{behind}")
        }
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::redacted;

    #[test]
    fn passwords_are_not_shown() {
        assert_eq!(redacted("redis://ada:s3cret@h:1/2?store=x"), "redis://ada:***@h:1/2?store=x");
        assert_eq!(redacted("redis://:s3:cr@t@h"), "redis://:***@h");
        assert_eq!(redacted("redis://h/@x:y"), "redis://h/@x:y");
        assert_eq!(redacted("mongodb://ada@h/db"), "mongodb://ada@h/db");
        assert_eq!(redacted("fjall:dir"), "fjall:dir");
    }
}
