//! Which of the target's routes an operation takes: by weight, and by a draw of its own.

use crate::rng::{Key, Purpose};

/// Routes by weight.
#[derive(Clone, Debug)]
pub(super) struct Routes {
    /// The sum of the weights up to each route.
    upto: Vec<f64>,
}

impl Routes {
    /// Weights that are not positive numbers count as zero.
    pub(super) fn new(weights: &[f64]) -> Self {
        let mut sum = 0.0;
        let positive = |w: f64| if w.is_finite() { w.max(0.0) } else { 0.0 };
        Self {
            upto: weights
                .iter()
                .map(|&w| {
                    sum += positive(w);
                    sum
                })
                .collect(),
        }
    }

    /// The route of the operation that the key names.
    pub(super) fn pick(&self, key: Key) -> u16 {
        if self.upto.len() < 2 {
            return 0;
        }
        let total = self.upto.last().copied().unwrap_or(0.0);
        let draw = key.stream(Purpose::Route).unit() * total;
        let index = self.upto.partition_point(|&upto| upto <= draw).min(self.upto.len() - 1);
        u16::try_from(index).unwrap_or(u16::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_follow_the_weights() {
        let routes = Routes::new(&[3.0, 0.0, 1.0, f64::NAN, -2.0]);
        let mut counts = [0; 5];
        for operation in 0..10_000 {
            counts[routes.pick(Key { operation, ..Key::default() }) as usize] += 1;
        }
        assert!((7_350..7_650).contains(&counts[0]), "{counts:?}");
        assert_eq!((counts[1], counts[3], counts[4]), (0, 0, 0));
    }

    #[test]
    fn without_weights_there_is_one_route() {
        for weights in [&[][..], &[5.0][..], &[0.0][..]] {
            assert_eq!(Routes::new(weights).pick(Key::default()), 0);
        }
    }
}
