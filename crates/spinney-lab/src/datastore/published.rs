//! Published figures of the suite, in milliseconds, as facts of other machines: shown beside ours and
//! never divided.
//!
//! The three plugins are sysrepo's, means of ten tries from the page "Database plugins performance" of
//! its documentation; eight of those rows change nothing in nine of their tries. `real_work` is sysrepo
//! 4.5.4 with libyang 5.4.9 and its JSON plugin on 2 virtual AMD EPYC cores and a RAM file system: the
//! processor time of a try that does the work, from two runs.

use std::ops::RangeInclusive;

/// The sizes that were published.
pub const SIZES: [usize; 3] = [1_000, 10_000, 100_000];

/// The plugins of [`Published::plugins`].
pub const PLUGINS: [&str; 3] = ["JSON DS file", "MONGO DS", "REDIS DS"];

/// One published row.
#[derive(Clone, Copy, Debug)]
pub struct Published {
    /// Its number.
    pub number: u8,
    /// The mean of each plugin at each size.
    pub plugins: [[f64; 3]; 3],
    /// What the work takes at each size, where each try does it: the lowest and the highest run.
    pub real_work: [(f64, f64); 3],
}

impl Published {
    /// The row of a number.
    pub fn of(number: u8) -> Option<&'static Published> {
        ROWS.iter().find(|row| row.number == number)
    }

    /// The mean of a plugin at N = `size`, in milliseconds.
    pub fn plugin(&self, plugin: usize, size: usize) -> Option<f64> {
        Some(self.plugins[plugin][place(size)?])
    }

    /// What the work takes at N = `size`, in milliseconds.
    pub fn real_work(&self, size: usize) -> Option<RangeInclusive<f64>> {
        let (low, high) = self.real_work[place(size)?];
        Some(low..=high)
    }
}

fn place(size: usize) -> Option<usize> {
    SIZES.iter().position(|published| *published == size)
}

#[rustfmt::skip]
const ROWS: [Published; 22] = [
    // get tree
    Published { number: 1, plugins: [[1.85, 19.6, 258.0], [3.39, 33.0, 419.0], [8.86, 95.2, 1261.0]], real_work: [(2.5, 2.5), (27.5, 27.5), (403.0, 403.0)] },
    // get item
    Published { number: 2, plugins: [[1.78, 17.9, 215.0], [4.91, 32.8, 415.0], [11.6, 93.3, 1354.0]], real_work: [(2.4, 2.4), (26.2, 26.2), (363.0, 363.0)] },
    // get tree hash
    Published { number: 3, plugins: [[1.27, 14.1, 183.0], [0.21, 0.243, 0.278], [0.079, 0.123, 0.126]], real_work: [(1.5, 1.5), (18.0, 22.0), (278.0, 278.0)] },
    // get user ordered tree
    Published { number: 4, plugins: [[0.771, 7.7, 92.1], [2.77, 27.0, 345.0], [10.3, 148.0, 1757.0]], real_work: [(0.89, 0.89), (8.7, 8.7), (117.0, 154.0)] },
    // get oper tree
    Published { number: 5, plugins: [[3.3, 31.7, 414.0], [9.51, 34.8, 433.0], [5.81, 41.0, 449.0]], real_work: [(2.7, 4.6), (35.0, 43.0), (591.0, 744.0)] },
    // create batch
    Published { number: 6, plugins: [[4.39, 47.4, 658.0], [15.8, 151.0, 1749.0], [18.6, 221.0, 2472.0]], real_work: [(5.2, 5.8), (80.0, 80.0), (1270.0, 1270.0)] },
    // create user ordered items
    Published { number: 7, plugins: [[7.39, 90.9, 964.0], [116.0, 1323.0, 14456.0], [55.1, 627.0, 5911.0]], real_work: [(10.7, 10.7), (122.0, 137.0), (1550.0, 1550.0)] },
    // create all items
    Published { number: 8, plugins: [[9.28, 107.0, 1214.0], [19.8, 218.0, 2361.0], [23.3, 264.0, 3007.0]], real_work: [(13.0, 13.0), (156.0, 156.0), (2010.0, 2010.0)] },
    // create all items oper
    Published { number: 9, plugins: [[9.83, 111.0, 1233.0], [17.4, 165.0, 1891.0], [23.8, 266.0, 3160.0]], real_work: [(14.5, 14.5), (178.0, 178.0), (2450.0, 2450.0)] },
    // many oper change_subs
    Published { number: 10, plugins: [[269.0, 3714.0, 42937.0], [656.0, 7152.0, 80463.0], [534.0, 5875.0, 68550.0]], real_work: [(1350.0, 1600.0), (17600.0, 23300.0), (320600.0, 320600.0)] },
    // remove all items
    Published { number: 11, plugins: [[0.29, 3.45, 36.8], [5.5, 39.9, 443.0], [1.73, 21.5, 227.0]], real_work: [(3.2, 3.2), (37.0, 37.0), (530.0, 530.0)] },
    // remove whole subtree
    Published { number: 12, plugins: [[0.279, 2.9, 37.0], [2.15, 15.1, 195.0], [1.84, 22.5, 223.0]], real_work: [(3.2, 3.2), (36.0, 36.0), (519.0, 519.0)] },
    // create an item
    Published { number: 13, plugins: [[2.19, 23.1, 263.0], [4.55, 29.9, 381.0], [9.08, 113.0, 1345.0]], real_work: [(2.3, 2.3), (25.6, 25.6), (317.0, 362.0)] },
    // create an item oper
    Published { number: 14, plugins: [[3.89, 41.9, 779.0], [3.61, 34.4, 717.0], [3.52, 42.0, 694.0]], real_work: [(5.0, 5.0), (85.0, 106.0), (1620.0, 1920.0)] },
    // modify an item
    Published { number: 15, plugins: [[1.4, 15.3, 162.0], [4.21, 28.2, 344.0], [9.05, 132.0, 1246.0]], real_work: [(2.4, 2.4), (26.0, 49.0), (351.0, 351.0)] },
    // remove an item
    Published { number: 16, plugins: [[1.4, 15.1, 162.0], [3.98, 26.9, 365.0], [8.45, 114.0, 1291.0]], real_work: [(2.3, 2.3), (25.9, 25.9), (341.0, 341.0)] },
    // get tree hash cached
    Published { number: 17, plugins: [[0.011, 0.028, 0.405], [0.091, 0.227, 3.69], [0.055, 0.153, 2.52]], real_work: [(0.015, 0.015), (0.015, 0.021), (1.4, 1.8)] },
    // remove all items cached
    Published { number: 18, plugins: [[0.22, 2.57, 43.7], [5.24, 39.5, 483.0], [0.676, 7.1, 83.3]], real_work: [(2.8, 2.8), (51.0, 62.0), (805.0, 955.0)] },
    // remove whole subtree cached
    Published { number: 19, plugins: [[0.227, 2.58, 44.8], [1.36, 13.2, 168.0], [0.744, 8.59, 93.6]], real_work: [(3.0, 3.0), (57.0, 64.0), (885.0, 1007.0)] },
    // create an item cached
    Published { number: 20, plugins: [[1.28, 14.5, 235.0], [0.725, 7.02, 171.0], [0.773, 8.09, 167.0]], real_work: [(1.4, 1.4), (24.0, 34.0), (451.0, 451.0)] },
    // modify an item cached
    Published { number: 21, plugins: [[0.505, 6.26, 107.0], [0.737, 4.84, 100.0], [0.476, 6.57, 108.0]], real_work: [(1.6, 1.6), (20.0, 27.0), (401.0, 460.0)] },
    // remove an item cached
    Published { number: 22, plugins: [[0.508, 5.58, 105.0], [0.465, 4.64, 109.0], [0.456, 6.06, 100.0]], real_work: [(1.6, 1.6), (23.0, 37.0), (420.0, 476.0)] },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datastore::ROWS as SUITE;

    #[test]
    fn every_published_row_has_figures_that_grow_with_its_size() {
        for row in SUITE.iter().filter_map(crate::datastore::Row::published) {
            let published = Published::of(row).unwrap_or_else(|| panic!("row {row}"));
            for plugin in 0..PLUGINS.len() {
                let figures = SIZES.map(|size| published.plugin(plugin, size).expect("published"));
                assert!(figures.is_sorted() && figures[0] > 0.0, "row {row}: {figures:?}");
            }
            let real = SIZES.map(|size| *published.real_work(size).expect("published").start());
            assert!(real.is_sorted(), "row {row}: {real:?}");
            assert!(published.real_work(2_000).is_none());
        }
    }
}
