//! Measurements: what there is to measure, and what came out of it.

use super::{Order, Owner};
use crate::events::Kind;
use crate::model::Event;
use crate::profiler::{Kept, Run, SurveyRequest, Trial, Verdict, survey};
use edgeloom_common::measure::{Measured, ProfileView};
use edgeloom_common::registry::RegistryHost;

impl Owner {
    pub(crate) fn survey(&self, order: &Order, request: SurveyRequest) -> Vec<Trial> {
        let mut trials = survey(self.model(), &self.nodes, (order, request));
        for trial in &mut trials {
            if let Verdict::Run(run) = &mut trial.verdict {
                let registry = RegistryHost::of_image(&run.command.image.repository);
                run.command.login = registry.and_then(|registry| self.login(&registry));
            }
        }
        trials
    }

    /// Keeps a measurement and decides anew on what waits; none where the figures make no sense or the
    /// journal refuses.
    pub(crate) fn keep_profile(&mut self, run: &Run, measured: &Measured) -> Option<ProfileView> {
        // As last told: what plans lean on follows a change of speed only once it lasts.
        let core_speed = self.nodes.table.get(&run.node)?.inventory.as_ref()?.core_speed;
        let positive = |figure: f64| figure.is_finite() && figure > 0.0;
        if ![core_speed, measured.wall_s, measured.cpu_s].into_iter().all(positive) {
            tracing::warn!(node = %run.node, core_speed, ?measured, "a measurement without sense is not kept");
            return None;
        }
        let kept = Kept::of(run, measured, core_speed, self.now_ms);
        let view = kept.view();
        if let Err(error) = self.state.commit(Event::Profiled { kept: Box::new(kept) }) {
            tracing::error!(%error, "a measurement is not kept");
            return None;
        }
        self.events.note(self.now_ms, None, Kind::Measured, told(&view));
        self.decided_on.clear();
        self.advance();
        Some(view)
    }
}

fn told(view: &ProfileView) -> String {
    let ProfileView { image, class, node, wall_s_measured, cpu_s_measured, .. } = view;
    let cores = cpu_s_measured / wall_s_measured;
    format!("{image} on {class} ({node}): {wall_s_measured:.4} s an item with {cores:.2} cores")
}
