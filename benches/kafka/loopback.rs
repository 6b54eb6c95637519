//! The only way to a broker's address: a benchmark floods what it is pointed at, so it is pointed at this machine alone.

use std::net::IpAddr;

/// Addresses of brokers on this machine, `host:port` with commas between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loopback(String);

impl Loopback {
    /// Refuses what is not loopback in every part, and what is empty: a script whose variable is not set must not end
    /// up anywhere.
    ///
    /// # Errors
    /// Says which part is refused.
    pub fn parse(servers: &str) -> Result<Loopback, String> {
        if servers.trim().is_empty() {
            return Err(
                "the address of the broker is empty; name a broker on 127.0.0.1, or none to start one".to_owned()
            );
        }
        match servers.split(',').find(|server| !is_loopback(server)) {
            None => Ok(Loopback(servers.to_owned())),
            Some(other) => Err(format!(
                "`{other}` is no loopback address with a port; this floods a broker, so it takes 127.0.0.1:PORT alone"
            )),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether `host:port` is on this machine whatever a name server says.
fn is_loopback(server: &str) -> bool {
    let Some((host, port)) = server.rsplit_once(':') else { return false };
    port.parse::<u16>().is_ok_and(|port| port != 0) && is_loopback_host(host)
}

/// Whether a host is a loopback address in figures. Names are refused, `localhost` too: they mean what a file says.
pub fn is_loopback_host(host: &str) -> bool {
    let figures = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    figures.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}
