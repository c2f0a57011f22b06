//! Ticks that people read easily: steps of 1, 2 or 5 times a power of ten.

/// The most steps of an axis.
const STEPS_MAX: f64 = 6.0;

/// An axis from one tick to another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scale {
    step: f64,
    pub(super) start: f64,
    pub(super) end: f64,
}

impl Scale {
    /// The shortest scale of few steps from 0 that holds `most`.
    pub(super) fn holding(most: f64) -> Self {
        Self::between(0.0, most)
    }

    /// The shortest scale of few steps that holds both.
    pub(super) fn between(least: f64, most: f64) -> Self {
        let sound = least.is_finite() && most.is_finite() && most > least;
        let (least, most) = if sound { (least, most) } else { (0.0, 1.0) };
        let span = most - least;
        let power = 10f64.powf((span / STEPS_MAX).log10().floor());
        let steps = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
        let step = steps.into_iter().find(|step| span / step <= STEPS_MAX).unwrap_or(10.0 * power);
        Self { step, start: (least / step).floor() * step, end: (most / step).ceil() * step }
    }

    /// Where a value lies, 0 to 1.
    pub(super) fn part(self, value: f64) -> f64 {
        (value.clamp(self.start, self.end) - self.start) / (self.end - self.start)
    }

    /// Each tick with its label, all with as many decimals as the step has.
    pub(super) fn ticks(self) -> Vec<(f64, String)> {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few decimals")]
        let decimals = (-self.step.log10().floor()).clamp(0.0, 12.0) as usize;
        let mut ticks = Vec::new();
        let mut at = self.start;
        while at <= self.end + self.step / 2.0 {
            ticks.push((at, format!("{at:.decimals$}")));
            at += self.step;
        }
        ticks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_need_not_begin_at_nothing() {
        let ticks = Scale::between(0.93, 1.07).ticks();
        let labels: Vec<&str> = ticks.iter().map(|(_, label)| label.as_str()).collect();
        assert_eq!(labels, ["0.90", "0.95", "1.00", "1.05", "1.10"]);
        assert_eq!(Scale::between(2.0, 4.0).part(3.0), 0.5);
        assert_eq!(Scale::between(1.0, 1.0), Scale::between(0.0, 1.0));
    }

    #[test]
    fn ticks_are_round_and_hold_the_most() {
        let labels = |most: f64| -> Vec<String> {
            Scale::holding(most).ticks().into_iter().map(|(_, label)| label).collect()
        };
        assert_eq!(labels(1.05), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0", "1.2"]);
        assert_eq!(labels(42.0), ["0", "10", "20", "30", "40", "50"]);
        assert_eq!(labels(0.0131), ["0.000", "0.005", "0.010", "0.015"]);
        assert_eq!(labels(0.0), labels(1.0));
    }
}
