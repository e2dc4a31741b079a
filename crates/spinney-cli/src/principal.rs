//! Who runs the command, as the operating system knows them.

use std::ffi::CString;

use nix::unistd::{Gid, Group, Uid, User, getgrouplist, getgroups};
use spinney::access::Principal;
use spinney::{Error, Result};

/// The user of this process, by effective identity; who has no name goes by number.
pub fn of_process() -> Result<Principal> {
    let uid = Uid::effective();
    let name = User::from_uid(uid).ok().flatten().map_or_else(|| uid.to_string(), |user| user.name);
    let mut groups = getgroups().map_err(cannot_tell)?;
    groups.push(Gid::effective());
    Ok(of(name, &groups))
}

/// A user by name, with the groups that the system knows of; one that it does not know has none.
pub fn named(name: &str) -> Result<Principal> {
    let Some(user) = User::from_name(name).ok().flatten() else { return Ok(Principal::new(name)) };
    let text = CString::new(name).map_err(|_| Error::invalid_input("a user's name has a NUL"))?;
    Ok(of(user.name, &getgrouplist(&text, user.gid).map_err(cannot_tell)?))
}

fn of(name: String, groups: &[Gid]) -> Principal {
    groups.iter().fold(Principal::new(name), |principal, gid| {
        let group = Group::from_gid(*gid).ok().flatten();
        principal.in_group(group.map_or_else(|| gid.to_string(), |group| group.name))
    })
}

fn cannot_tell(error: nix::errno::Errno) -> Error {
    Error::io("the system does not tell the groups of a user")
        .with_source(std::io::Error::from(error))
}
