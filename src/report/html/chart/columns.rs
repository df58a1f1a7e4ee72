//! Series in as many columns as a screen shows: where several windows share one, its lowest and its highest value stay.

use super::scale::Scale;
use std::fmt::Write;

/// The most columns of a chart; more windows share them.
pub const MOST: usize = 600;

/// How many windows share a column.
pub fn together(windows: usize, most: usize) -> usize {
    windows.div_ceil(most.max(1)).max(1)
}

/// The lowest and the highest value of each column; none where it has no evidence.
pub fn columns(values: &[Option<f64>], together: usize) -> Vec<Option<(f64, f64)>> {
    values
        .chunks(together.max(1))
        .map(|chunk| {
            let mut known = chunk.iter().flatten().copied().filter(|x| x.is_finite());
            let first = known.next()?;
            Some(known.fold((first, first), |(low, high), x| (low.min(x), high.max(x))))
        })
        .collect()
}

/// A stepped line, one column wide for each value: `M0 398h1V412h2`. Where a column has two values, the nearer one comes first.
pub fn line(columns: &[Option<(f64, f64)>], scale: &Scale) -> String {
    let mut path = Path::default();
    for (index, column) in columns.iter().enumerate() {
        match column {
            None => path.gap(),
            Some((low, high)) => {
                let (low, high) = (scale.coordinate(*low), scale.coordinate(*high));
                let (near, far) = if path.level == high { (high, low) } else { (low, high) };
                path.step(index, &near, &far);
            }
        }
    }
    path.finish()
}

/// What lies between two lines of the same columns, or between one and the foot.
pub fn area(columns: &[Option<(f64, f64)>], scale: &Scale) -> String {
    let foot = super::scale::short(scale.coordinates().0);
    let mut text = String::new();
    let mut from = 0;
    while from < columns.len() {
        let Some(length) = columns[from..].iter().position(Option::is_none).or(Some(columns.len() - from)) else { break };
        if length > 0 {
            let mut level = String::new();
            let mut run = 0;
            let _ = write!(text, "M{from} {foot}");
            for (_, high) in columns[from..from + length].iter().flatten() {
                let high = scale.coordinate(*high);
                if high != level {
                    flush(&mut text, &mut run);
                    let _ = write!(text, "V{high}");
                    level = high;
                }
                run += 1;
            }
            flush(&mut text, &mut run);
            let _ = write!(text, "V{foot}z");
        }
        from += length + 1;
    }
    text
}

/// A band between the lowest and the highest of each column.
pub fn band(columns: &[Option<(f64, f64)>], scale: &Scale) -> String {
    let mut text = String::new();
    let mut from = 0;
    while from < columns.len() {
        let length = columns[from..].iter().position(Option::is_none).unwrap_or(columns.len() - from);
        let run: Vec<(String, String)> = columns[from..from + length]
            .iter()
            .flatten()
            .map(|(low, high)| (scale.coordinate(*low), scale.coordinate(*high)))
            .collect();
        if let Some((low, _)) = run.first() {
            let _ = write!(text, "M{from} {low}");
            let there = run.iter().map(|(_, high)| format!("V{high}h1"));
            let back = run.iter().rev().map(|(low, _)| format!("V{low}h-1"));
            text.extend(there.chain(back));
            text.push('z');
        }
        from += length + 1;
    }
    text
}

fn flush(text: &mut String, run: &mut usize) {
    if *run > 0 {
        let _ = write!(text, "h{run}");
        *run = 0;
    }
}

/// A stepped line as it grows.
#[derive(Default)]
struct Path {
    text: String,
    level: String,
    run: usize,
}

impl Path {
    fn gap(&mut self) {
        flush(&mut self.text, &mut self.run);
        self.level.clear();
    }

    fn step(&mut self, column: usize, near: &str, far: &str) {
        if self.level.is_empty() {
            let _ = write!(self.text, "M{column} {near}");
        } else if self.level != near || near != far {
            flush(&mut self.text, &mut self.run);
            let _ = write!(self.text, "V{near}");
        }
        if near != far {
            flush(&mut self.text, &mut self.run);
            let _ = write!(self.text, "V{far}");
        }
        self.level = far.into();
        self.run += 1;
    }

    fn finish(mut self) -> String {
        flush(&mut self.text, &mut self.run);
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(values: &[f64]) -> Vec<Option<f64>> {
        values.iter().copied().map(Some).collect()
    }

    #[test]
    fn no_peak_and_no_dip_is_lost() {
        let mut values = vec![100.0; 86_400];
        (values[777], values[50_000]) = (9_000.0, 0.0);
        let together = together(values.len(), MOST);
        let shown = columns(&some(&values), together);
        assert!(shown.len() <= MOST, "{}", shown.len());
        assert_eq!(shown[777 / together], Some((100.0, 9_000.0)));
        assert_eq!(shown[50_000 / together], Some((0.0, 100.0)));
        let path = line(&shown, &Scale::linear(9_000.0));
        assert!(path.contains("V9000h1") && path.contains("V0h1"), "{path}");
    }

    #[test]
    fn lines_are_stepped_and_gaps_stay_gaps() {
        let scale = Scale::linear(500.0);
        let values = [Some(398.0), Some(412.0), Some(412.0), None, Some(3.0)];
        assert_eq!(line(&columns(&values, 1), &scale), "M0 398h1V412h2M4 3h1");
        assert_eq!(area(&columns(&values, 1), &scale), "M0 0V398h1V412h2V0zM4 0V3h1V0z");
        assert_eq!(line(&columns(&values, 2), &scale), "M0 398V412h2V3h1");
        assert_eq!(line(&columns(&[None, None], 1), &scale), "");
        assert_eq!(band(&[Some((1.0, 3.0)), Some((2.0, 4.0))], &scale), "M0 1V3h1V4h1V2h-1V1h-1z");
        assert_eq!(columns(&[Some(f64::NAN)], 1), [None]);
    }
}
