//! Where a client connects from, as far as that is counted.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The address of a peer over IPv4; over IPv6 the first 64 bits of it, since one machine may have all
/// addresses that begin so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PeerNetwork(IpAddr);

impl PeerNetwork {
    /// This machine, whatever a client connects by.
    pub const LOCAL: Self = Self(IpAddr::V4(Ipv4Addr::LOCALHOST));
}

impl From<IpAddr> for PeerNetwork {
    fn from(address: IpAddr) -> Self {
        match address.to_canonical() {
            address if address.is_loopback() => Self::LOCAL,
            IpAddr::V6(address) => Self(Ipv6Addr::from(u128::from(address) & (u128::MAX << 64)).into()),
            address @ IpAddr::V4(_) => Self(address),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_one_peer_whichever_of_its_addresses_it_uses() {
        let is_same = |one: &str, other: &str| {
            let network = |address: &str| PeerNetwork::from(address.parse::<IpAddr>().unwrap());
            network(one) == network(other)
        };
        assert!(is_same("2001:db8::1", "2001:db8::ffff:0:0:1"));
        assert!(!is_same("2001:db8::1", "2001:db8:0:1::1"));
        assert!(is_same("192.0.2.1", "::ffff:192.0.2.1"));
        assert!(!is_same("192.0.2.1", "192.0.2.2"));
        assert!(is_same("127.0.0.1", "::1"));
    }
}
