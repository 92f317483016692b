//! Scrapes and reads `/metrics`.

use super::Server;

/// The samples of a scrape, in its order: the name with the labels, and the value.
pub struct Samples(Vec<(String, f64)>);

impl Samples {
    /// Scrapes the metrics of a server.
    pub fn of(server: &Server) -> Self {
        let response = server.get("/metrics");
        assert_eq!(response.status(), 200);
        let text = response.text().unwrap();
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        let samples = samples.map(|line| {
            let (name, value) = line.rsplit_once(' ').unwrap();
            (name.to_owned(), value.parse().unwrap())
        });
        Self(samples.collect())
    }

    /// The value of the sample with this name and these labels, written as in the scrape.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.iter().find(|(have, _)| have == name).map(|(_, value)| *value)
    }

    /// The sum of all samples whose name starts with `begins` and contains every part in `has`.
    pub fn sum(&self, begins: &str, has: &[&str]) -> f64 {
        let matching = self
            .0
            .iter()
            .filter(|(name, _)| name.starts_with(begins) && has.iter().all(|part| name.contains(part)));
        matching.map(|(_, value)| value).sum()
    }
}
