//! Ticks that people read easily: steps of 1, 2 or 5 times a power of ten.

/// The most steps of an axis.
const STEPS_MAX: f64 = 6.0;

/// An axis from 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scale {
    step: f64,
    /// The end of the axis, a tick.
    pub(super) end: f64,
}

impl Scale {
    /// The shortest scale of few steps that holds `most`.
    pub(super) fn holding(most: f64) -> Self {
        let most = if most.is_finite() && most > 0.0 { most } else { 1.0 };
        let power = 10f64.powf((most / STEPS_MAX).log10().floor());
        let steps = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
        let step = steps.into_iter().find(|step| most / step <= STEPS_MAX).unwrap_or(10.0 * power);
        Self { step, end: (most / step).ceil() * step }
    }

    /// Each tick with its label, all with as many decimals as the step has.
    pub(super) fn ticks(self) -> Vec<(f64, String)> {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few decimals")]
        let decimals = (-self.step.log10().floor()).clamp(0.0, 12.0) as usize;
        let mut ticks = Vec::new();
        let mut at = 0.0;
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
