//! Tables and plots of the growth and of the rounds.

use doppel_model::Tau;
use doppel_terminal::output::count;
use doppel_terminal::svg::{Panel, PlotSeries};

use super::{IncrementalResult, Round, Size};
use crate::report::{Report, Table, percent};

impl Report for IncrementalResult {
    fn tables(&self) -> Vec<Table> {
        let mut sizes = Table::new(
            "milliseconds a page of a batch",
            [
                "pages",
                "from scratch",
                "incremental",
                "of these until answered",
                "ratio",
                "of processor time",
                "groups",
                "confirmed",
            ],
        );
        for size in &self.sizes {
            sizes.row([
                count(size.pages as u64),
                format!("{:.3}", size.non_incremental),
                format!("{:.3}", size.incremental),
                format!("{:.3}", size.answered),
                format!("{:.2}", size.ratio),
                format!(
                    "{:.3} / {:.3} = {:.2}",
                    size.non_incremental_processor, size.incremental_processor, size.ratio_processor
                ),
                count(size.groups),
                format!("{} %", percent(size.confirmed)),
            ]);
        }
        let mut rounds = Table::new(
            "updates that the representative confirmed, by round",
            ["round", "tau", "updates", "confirmed"],
        );
        for Round { round, tau, updates, confirmed } in &self.rounds {
            let confirmed = format!("{} %", percent(*confirmed));
            rounds.row([round.clone(), tau.to_string(), count(*updates), confirmed]);
        }
        vec![sizes, rounds]
    }

    fn notes(&self) -> Vec<String> {
        let Self { tau, batch, real_pages, .. } = self;
        vec![
            format!(
                "batches of {} pages, tau {tau}; the first {} pages are real, the others made from them",
                count((*batch).into()),
                count(*real_pages as u64)
            ),
            "the paper: from below 1 to 24 at 100 million pages on 50 machines; about 30 % confirmed"
                .to_owned(),
        ]
    }

    fn panels(&self) -> Vec<Panel> {
        let line = |name: &str, dashed, of: fn(&Size) -> f64| PlotSeries {
            name: name.to_owned(),
            dashed,
            points: self.sizes.iter().map(|size| (size.pages as f64, of(size))).collect(),
        };
        let ratio = Panel {
            title: "From scratch over incremental (figure 7)".to_owned(),
            x: "pages in the collection".to_owned(),
            y: "ratio of the times per page".to_owned(),
            series: vec![
                line("time, until nothing is left to do", false, |size| size.ratio),
                line("processor time", true, |size| size.ratio_processor),
            ],
            marks: vec![(24.0, "the paper at 100 million pages".to_owned())],
            ..Panel::default()
        };
        let times = Panel {
            title: "Time per page of a batch".to_owned(),
            x: "pages in the collection".to_owned(),
            y: "milliseconds".to_owned(),
            logarithmic_x: true,
            logarithmic_y: true,
            series: vec![
                line("from scratch", false, |size| size.non_incremental),
                line("incremental, decided", false, |size| size.incremental),
                line("incremental, answered", true, |size| size.answered),
            ],
            ..Panel::default()
        };
        let mut taus: Vec<Tau> = self.rounds.iter().map(|round| round.tau).collect();
        taus.dedup();
        let confirmed = |tau: Tau| {
            let rounds = self.rounds.iter().filter(|round| round.tau == tau).zip(1..);
            let points = rounds.map(|(round, number)| (f64::from(number), 100.0 * round.confirmed)).collect();
            PlotSeries { name: format!("tau {tau}"), dashed: false, points }
        };
        let confirmed = Panel {
            title: "Updates confirmed by the representative (figure 8)".to_owned(),
            x: "round with updates".to_owned(),
            y: "% of the updates".to_owned(),
            series: taus.into_iter().map(confirmed).collect(),
            marks: vec![(30.0, "the paper".to_owned())],
            ..Panel::default()
        };
        vec![ratio, times, confirmed]
    }
}
