//! Statistics of a sample: mean, deviation, percentiles and confidence interval.

use serde::Serialize;

/// Quantiles of Student's t-distribution for a two-sided 95 % interval, by degrees of freedom from 1.
const STUDENT_95: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];
/// Quantile of the normal distribution, which Student's t-distribution approaches.
const NORMAL_95: f64 = 1.960;
/// Slope of that approach. Beyond the table, the quantile is about `NORMAL_95 + STUDENT_SLOPE / degrees`.
const STUDENT_SLOPE: f64 = 2.46;

/// Confidence interval of a mean, at a level of 95 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval(pub f64, pub f64);

/// Sample of numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample(Vec<f64>);

impl FromIterator<f64> for Sample {
    fn from_iter<T: IntoIterator<Item = f64>>(numbers: T) -> Sample {
        Sample(numbers.into_iter().collect())
    }
}

impl Sample {
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns the mean, or `None` for an empty sample.
    pub fn mean(&self) -> Option<f64> {
        (!self.0.is_empty()).then(|| self.0.iter().sum::<f64>() / self.0.len() as f64)
    }

    /// Returns the sample standard deviation, or `None` for fewer than two numbers.
    pub fn deviation(&self) -> Option<f64> {
        let mean = self.mean().filter(|_| self.0.len() > 1)?;
        let squares: f64 = self.0.iter().map(|number| (number - mean).powi(2)).sum();
        Some((squares / (self.0.len() - 1) as f64).sqrt())
    }

    /// Returns the confidence interval of the mean, or `None` for fewer than two numbers.
    pub fn interval(&self) -> Option<Interval> {
        let (mean, deviation) = (self.mean()?, self.deviation()?);
        let half = student_95(self.0.len() - 1) * deviation / (self.0.len() as f64).sqrt();
        Some(Interval(mean - half, mean + half))
    }

    /// Returns the smallest number of the sample that at least this share of the numbers does not exceed.
    ///
    /// Returns `None` for an empty sample.
    pub fn percentile(&self, share: f64) -> Option<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let rank = (share * sorted.len() as f64).ceil() as usize;
        sorted.get(rank.max(1) - 1).copied()
    }

    /// Returns the count of zeros, followed by the count of numbers in each tenth up to 1.
    ///
    /// Numbers outside this range count at its nearest end.
    pub fn distribution(&self) -> [u64; 11] {
        let mut counts = [0; 11];
        for number in &self.0 {
            // The rounding error of a tenth must not lift a number into the next one.
            let tenth = (number * 10.0 - 1e-9).ceil().clamp(0.0, 10.0);
            counts[tenth as usize] += 1;
        }
        counts
    }
}

fn student_95(degrees: usize) -> f64 {
    match STUDENT_95.get(degrees - 1) {
        Some(quantile) => *quantile,
        None => NORMAL_95 + STUDENT_SLOPE / degrees as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(numbers: &[f64]) -> Sample {
        numbers.iter().copied().collect()
    }

    #[test]
    fn figures_of_a_sample() {
        let four = sample(&[1.0, 2.0, 3.0, 4.0]);
        assert_eq!((four.mean(), four.percentile(0.5), four.percentile(0.95)), (Some(2.5), Some(2.0), Some(4.0)));
        assert!((four.deviation().expect("four numbers") - 1.290_994).abs() < 1e-6);
        let Interval(low, high) = four.interval().expect("four numbers");
        assert!((low - 0.445_75).abs() < 1e-3 && (high - 4.554_25).abs() < 1e-3, "{low} {high}");
    }

    #[test]
    fn few_numbers_have_no_deviation() {
        assert_eq!((sample(&[]).mean(), sample(&[]).percentile(0.5)), (None, None));
        assert_eq!((sample(&[1.0]).mean(), sample(&[1.0]).interval()), (Some(1.0), None));
    }

    #[test]
    fn quantiles_go_on_behind_the_table() {
        assert!((student_95(31) - 2.040).abs() < 0.003 && (student_95(100) - 1.984).abs() < 0.003);
        assert!((student_95(1_000_000) - NORMAL_95).abs() < 1e-3);
    }

    #[test]
    fn scores_fall_into_tenths() {
        let found = sample(&[0.0, -1.0, 0.05, 0.1, 0.3, 0.7, 1.0, 3.0]).distribution();
        assert_eq!(found, [2, 2, 0, 1, 0, 0, 0, 1, 0, 0, 2]);
    }
}
