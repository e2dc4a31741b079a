//! A Redis Cluster of a test: three masters on ports of the kernel's choosing.

use std::thread;
use std::time::{Duration, Instant};

use redis::Value;

use super::redis::{RedisServer, free_port};

/// How long the masters may take until they agree.
const PATIENCE: Duration = Duration::from_secs(30);

/// Slots of a cluster.
const SLOTS: u32 = 16_384;

/// Three masters, which end with it.
pub struct RedisCluster {
    /// The masters; each has a third of the slots.
    pub masters: Vec<RedisServer>,
}

impl RedisCluster {
    /// Starts three masters with settings as on their command line and joins them. `None`, with a line
    /// that says so, where there is no server to start.
    ///
    /// # Panics
    /// When servers that are there do not join.
    pub fn start(settings: &[&str]) -> Option<RedisCluster> {
        let master = || {
            let bus = free_port().to_string();
            let of_cluster = [
                ["--cluster-enabled", "yes"],
                ["--cluster-config-file", "nodes.conf"],
                ["--cluster-node-timeout", "2000"],
                ["--cluster-require-full-coverage", "no"],
                ["--cluster-port", &bus],
            ];
            let started = RedisServer::start(&[of_cluster.as_flattened(), settings].concat())?;
            Some((started, bus))
        };
        let masters: Vec<(RedisServer, String)> = (0..3).map_while(|_| master()).collect();
        if masters.len() < 3 {
            return None;
        }
        let share = SLOTS / 3 + 1;
        for (i, (master, _)) in (0_u32..).zip(&masters) {
            let (first, last) = (i * share, ((i + 1) * share).min(SLOTS) - 1);
            master.ask::<String>(&["CLUSTER", "SET-CONFIG-EPOCH", &(i + 1).to_string()]);
            let (first, last) = (first.to_string(), last.to_string());
            master.ask::<String>(&["CLUSTER", "ADDSLOTSRANGE", &first, &last]);
        }
        for (master, bus) in &masters[1..] {
            let port = master.port().to_string();
            masters[0].0.ask::<String>(&["CLUSTER", "MEET", "127.0.0.1", &port, bus]);
        }
        let masters = masters.into_iter().map(|(master, _)| master).collect();
        let cluster = RedisCluster { masters };
        cluster.wait_until_agreed();
        Some(cluster)
    }

    /// Masters that sync each write before they answer.
    pub fn start_durable() -> Option<RedisCluster> {
        RedisCluster::start(&["--appendonly", "yes", "--appendfsync", "always"])
    }

    /// Waits until every master knows that all slots are served.
    ///
    /// # Panics
    /// When that takes too long.
    pub fn wait_until_agreed(&self) {
        let since = Instant::now();
        let knows = |master: &RedisServer| {
            let facts: String = master.ask(&["CLUSTER", "INFO"]);
            let has = |fact: &str| facts.lines().any(|line| line == fact);
            has("cluster_state:ok") && has("cluster_slots_ok:16384") && has("cluster_known_nodes:3")
        };
        while !self.masters.iter().all(knows) {
            assert!(since.elapsed() < PATIENCE, "the masters do not agree");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// The URL of a store, which names all masters.
    pub fn url(&self, store: &str) -> String {
        let server = |master: &RedisServer| format!("127.0.0.1:{}", master.port());
        let servers: Vec<String> = self.masters.iter().map(server).collect();
        format!("redis+cluster://{}?store={store}", servers.join(","))
    }

    /// The slot of a tree of a store, and which master has it.
    ///
    /// # Panics
    /// As [`RedisCluster::place_of_key`].
    pub fn place_of(&self, store: &str, tree: &str) -> (u16, usize) {
        self.place_of_key(&format!("{{{store}/{tree}}}:meta"))
    }

    /// The slot of a key, and which master has it.
    ///
    /// # Panics
    /// When the first master does not tell.
    pub fn place_of_key(&self, key: &str) -> (u16, usize) {
        let asked = &self.masters[0];
        let slot: u16 = asked.ask(&["CLUSTER", "KEYSLOT", key]);
        let ranges: Vec<Value> = asked.ask(&["CLUSTER", "SLOTS"]);
        let port = ranges.iter().find_map(|range| match range {
            Value::Array(parts) => match &parts[..] {
                [Value::Int(first), Value::Int(last), Value::Array(master), ..]
                    if (*first..=*last).contains(&i64::from(slot)) =>
                {
                    Some(master[1].clone())
                }
                _ => None,
            },
            _ => None,
        });
        let has = |master: &RedisServer| Some(Value::Int(master.port().into())) == port;
        (slot, self.masters.iter().position(has).expect("a master has the slot"))
    }

    /// Moves a slot from one master to another, key by key, with a pause before each step.
    ///
    /// # Panics
    /// When a master refuses it.
    pub fn move_slot(&self, slot: u16, from: usize, to: usize, pause: Duration) {
        let (source, target) = (&self.masters[from], &self.masters[to]);
        let id = |master: &RedisServer| master.ask::<String>(&["CLUSTER", "MYID"]);
        let (source_id, target_id) = (id(source), id(target));
        let (slot, port) = (slot.to_string(), target.port().to_string());
        target.ask::<String>(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &source_id]);
        source.ask::<String>(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &target_id]);
        loop {
            thread::sleep(pause);
            let keys: Vec<String> = source.ask(&["CLUSTER", "GETKEYSINSLOT", &slot, "1"]);
            let Some(key) = keys.first() else { break };
            source.ask::<String>(&["MIGRATE", "127.0.0.1", &port, key, "0", "5000"]);
        }
        for master in [target, source].into_iter().chain(&self.masters) {
            master.ask::<String>(&["CLUSTER", "SETSLOT", &slot, "NODE", &target_id]);
        }
    }
}
