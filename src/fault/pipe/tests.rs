//! Pipes in virtual time: what comes when, and what goes when, by hand.

use super::super::timeline::tests::step;
use super::super::{Bandwidth, Toxic};
use super::*;

/// What happens to a pipe at a millisecond.
#[derive(Clone)]
enum Do {
    Push(usize),
    Finish,
    Retune(Vec<Spec>),
}

use Do::{Finish, Push, Retune};

fn at(micros: u64) -> Timestamp {
    Timestamp(micros * 1_000)
}

fn ms(n: u64) -> Span {
    Span::from_millis(n)
}

fn rate(kilobytes: u64) -> ByteRate {
    ByteRate::per_second(kilobytes * 1_000).unwrap()
}

fn delay(millis: u64) -> Spec {
    Spec::Latency(latency::Delays::around(ms(millis), Span::ZERO))
}

fn cut(size: u64, variation: u64, delay: u64) -> Spec {
    Spec::Slicer(slicer::Cut { size, variation, delay: ms(delay) })
}

fn slots(specs: &[Spec], connection: u32, now: Timestamp) -> Vec<Slot> {
    let slot = |(n, spec): (usize, &Spec)| {
        let fault = match spec {
            Spec::Overall(rate) => Fault::Bandwidth(Bandwidth { rate: *rate, stream: Direction::Both, overall: true }),
            // What the step says does not count.
            _ => Fault::Close(crate::fault::Close {}),
        };
        let rule = Arc::new(Rule::new(n, step("x", 0, 1, fault)));
        let dice = Request::foreign(0, connection, 0).dice(7, n);
        Slot::new(rule, spec.clone(), dice, Stream::Upstream, now)
    };
    specs.iter().enumerate().map(slot).collect()
}

/// What bytes are at a place of a stream.
fn byte(n: usize) -> u8 {
    (n * 7 + n / 251) as u8
}

struct Bench {
    pipe: Pipe,
    came: usize,
    went: usize,
    seen: Vec<(u64, String)>,
}

impl Bench {
    fn new(specs: &[Spec]) -> Self {
        Self { pipe: Pipe::new(slots(specs, 0, at(0))), came: 0, went: 0, seen: Vec::new() }
    }

    /// Takes out all that is due; until when nothing is.
    fn drain(&mut self, now: Timestamp) -> Option<Timestamp> {
        loop {
            let told = |text: String| (now.0 / 1_000, text);
            match self.pipe.next(now) {
                Next::Send(n) => {
                    assert!((0..n).all(|k| self.pipe.bytes[k] == byte(self.went + k)), "the bytes are those that came");
                    self.pipe.consume(n);
                    self.went += n;
                    self.seen.push(told(n.to_string()));
                }
                Next::Wait(until) => {
                    assert!(until > now);
                    return Some(until);
                }
                Next::Idle => return None,
                Next::End(end) => {
                    self.seen.push(told(format!("{end:?}")));
                    return None;
                }
            }
        }
    }

    fn run(mut self, steps: &[(u64, Do)]) -> Vec<(u64, String)> {
        for (n, (micros, what)) in steps.iter().enumerate() {
            let now = at(*micros);
            match what {
                Push(len) => {
                    let bytes: Vec<u8> = (0..*len).map(|k| byte(self.came + k)).collect();
                    self.came += len;
                    self.pipe.push(&bytes, now);
                }
                Finish => self.pipe.finish(now),
                Retune(specs) => self.pipe.retune(slots(specs, 0, now), now),
            }
            let next = steps.get(n + 1).map_or(Timestamp::NEVER, |(micros, _)| at(*micros));
            let mut due = self.drain(now);
            while let Some(until) = due.filter(|until| *until < next && !self.is_over()) {
                due = self.drain(until);
            }
            if self.is_over() {
                break;
            }
        }
        self.seen
    }

    fn is_over(&self) -> bool {
        self.seen.last().is_some_and(|(_, text)| text.starts_with(|c: char| c.is_alphabetic()))
    }
}

/// What goes, as `1500:10 bytes` would be `(1500, "10")`: microseconds, and how many bytes or which end.
#[track_caller]
fn check(specs: &[Spec], steps: &[(u64, Do)], want: &[(u64, &str)]) {
    let seen = Bench::new(specs).run(steps);
    let seen: Vec<(u64, &str)> = seen.iter().map(|(micros, text)| (*micros, text.as_str())).collect();
    assert_eq!(seen, want, "{specs:?}");
}

#[test]
fn no_stage_and_noop_let_everything_through_at_once() {
    for specs in [vec![], vec![Spec::Noop], vec![delay(0), cut(1 << 20, 0, 0), Spec::LimitData(Size(1 << 40))]] {
        check(&specs, &[(0, Push(10)), (5, Push(20)), (6, Finish)], &[(0, "10"), (5, "20"), (6, "Fin")]);
    }
}

#[test]
fn latency_delays_each_piece_and_the_end_in_order() {
    check(
        &[delay(100)],
        &[(0, Push(10)), (30_000, Push(20)), (40_000, Finish)],
        &[(100_000, "10"), (130_000, "20"), (140_000, "Fin")],
    );
    // By draws between 50 and 150 ms some would overtake others: they wait for those before them.
    let jitter = Spec::Latency(latency::Delays::around(ms(100), ms(50)));
    let steps: Vec<(u64, Do)> = (0..40).map(|n| (n * 1_000, Push(1 + n as usize))).collect();
    let seen = Bench::new(&[jitter]).run(&steps);
    let bytes: usize = seen.iter().map(|(_, text)| text.parse::<usize>().unwrap()).sum();
    assert_eq!(bytes, 820);
    assert!(seen.windows(2).all(|pair| pair[0].0 < pair[1].0) && seen.len() < 40, "some wait for the one before: {}", seen.len());
    assert!(seen[0].0 >= 50_000 && seen.last().unwrap().0 <= 189_000);
}

#[test]
fn a_bandwidth_lets_so_many_bytes_pass() {
    // 100 KB/s are 1,000 bytes in 10 ms, which is as much as goes in one piece.
    check(
        &[Spec::Bandwidth(rate(100))],
        &[(0, Push(2_500)), (50_000, Push(500)), (51_000, Finish)],
        &[(10_000, "1000"), (20_000, "1000"), (25_000, "500"), (55_000, "500"), (55_000, "Fin")],
    );
    // What is due within a millisecond goes at once, and what follows pays for it.
    check(
        &[Spec::Bandwidth(rate(100))],
        &[(0, Push(100)), (100, Push(100)), (200, Push(100))],
        &[(0, "100"), (2_000, "100"), (3_000, "100")],
    );
}

#[test]
fn a_bandwidth_over_all_connections_is_shared() {
    let specs = [Spec::Overall(rate(100))];
    let (mut one, mut two) = (slots(&specs, 0, at(0)), slots(&specs, 1, at(0)));
    two[0].rule = one[0].rule.clone();
    let mut pipes = [Pipe::new(std::mem::take(&mut one)), Pipe::new(two)];
    let mut seen = Vec::new();
    for pipe in &mut pipes {
        pipe.push(&[0; 20_000], at(0));
    }
    // A turn of 16,384 bytes takes 163.84 ms, and its bytes go as it begins. Who has had a turn asks for its next one at once.
    for micros in (0..500_000).step_by(40) {
        for (n, pipe) in pipes.iter_mut().enumerate() {
            if let Next::Send(len) = pipe.next(at(micros)) {
                pipe.consume(len);
                seen.push((n, micros, len));
            }
        }
    }
    assert_eq!(seen, [(0, 0, 16_384), (0, 163_840, 3_616), (1, 200_000, 16_384), (1, 363_840, 3_616)]);
}

#[test]
fn a_slicer_cuts_and_pauses_behind_each_piece() {
    check(
        &[cut(4, 0, 10)],
        &[(0, Push(10)), (5_000, Push(3)), (6_000, Finish)],
        &[(0, "4"), (10_000, "4"), (20_000, "2"), (30_000, "3"), (30_000, "Fin")],
    );
    check(&[cut(4, 0, 0)], &[(0, Push(10))], &[(0, "4"), (0, "4"), (0, "2")]);
    let seen = Bench::new(&[cut(100, 20, 0)]).run(&[(0, Push(50_000))]);
    let sizes: Vec<usize> = seen.iter().map(|(_, text)| text.parse().unwrap()).collect();
    let whole = &sizes[..sizes.len() - 1];
    assert!(whole.iter().all(|size| (80..=120).contains(size)) && whole.contains(&80) && whole.contains(&120), "{whole:?}");
    assert_eq!(sizes.iter().sum::<usize>(), 50_000);
    assert!((490..=510).contains(&sizes.len()), "their mean is 100: {} pieces", sizes.len());
}

#[test]
fn limited_data_passes_to_the_byte_and_then_the_connection_is_closed() {
    let limit = |n| Spec::LimitData(Size(n));
    check(&[limit(100)], &[(0, Push(60)), (5, Push(60)), (9, Push(60))], &[(0, "60"), (5, "40"), (5, "Close")]);
    check(&[limit(100)], &[(0, Push(100)), (5, Push(60))], &[(0, "100"), (0, "Close")]);
    check(&[limit(100)], &[(0, Push(60)), (5, Finish)], &[(0, "60"), (5, "Fin")]);
    check(&[limit(0)], &[(3, Push(60))], &[(3, "Close")]);
    check(&[limit(100), delay(10)], &[(0, Push(60)), (5, Push(60))], &[(10_000, "60"), (10_005, "40"), (10_005, "Close")]);
}

#[test]
fn a_stall_swallows_and_closes_after_silence_or_at_a_moment() {
    let stall = |timeout, measure| Spec::Stall(stall::Stall { timeout: ms(timeout), measure, stream: Direction::Both });
    let steps = [(0, Push(10)), (80_000, Push(10)), (90_000, Finish)];
    check(&[stall(100, stall::Measure::Silence)], &steps, &[(180_000, "Close")]);
    check(&[stall(100, stall::Measure::Absolute)], &steps, &[(100_000, "Close")]);
    check(&[stall(100, stall::Measure::Silence)], &[(0, Push(0))], &[(100_000, "Close")]);
    check(&[stall(0, stall::Measure::Silence)], &steps, &[]);
}

#[test]
fn an_end_that_was_swallowed_comes_when_the_fault_goes() {
    for specs in [[Spec::Stall(stall::Stall::forever())], [Spec::ResetPeer(ms(20))]] {
        check(&specs, &[(0, Finish), (5_000, Retune(vec![]))], &[(5_000, "Fin")]);
        check(&specs, &[(0, Finish), (5_000, Retune(vec![delay(9)]))], &[(9_000, "Fin")]);
    }
}

#[test]
fn a_slow_close_is_late_and_its_bytes_are_not() {
    check(&[Spec::SlowClose(ms(50))], &[(0, Push(10)), (1_000, Finish)], &[(0, "10"), (51_000, "Fin")]);
}

#[test]
fn a_reset_comes_at_its_moment_whatever_waits() {
    let reset = Spec::ResetPeer(ms(20));
    check(&[Spec::Noop, reset.clone()], &[(0, Push(0))], &[(20_000, "Reset")]);
    check(&[delay(100), reset.clone()], &[(0, Push(10)), (5_000, Finish)], &[(20_000, "Reset")]);
    check(&[Spec::ResetPeer(Span::ZERO)], &[(0, Push(10))], &[(0, "Reset")]);
    check(&[delay(100)], &[(0, Push(10)), (5_000, Retune(vec![delay(100), reset]))], &[(25_000, "Reset")]);
}

#[test]
fn half_open_swallows_everything_and_says_nothing() {
    check(&[Spec::HalfOpen], &[(0, Push(10)), (5, Finish)], &[]);
    let gone = [(0, Push(10)), (5, Retune(vec![])), (9, Push(10)), (10, Finish)];
    check(&[Spec::HalfOpen], &gone, &[]);
    let spared = [(0, Retune(vec![])), (9, Push(10)), (10, Finish)];
    check(&[Spec::HalfOpen], &spared, &[(9, "10"), (10, "Fin")]);
}

#[test]
fn lost_segments_come_late_and_hold_up_what_is_behind_them() {
    let seen = Bench::new(&[Spec::Loss(Share::new(0.3).unwrap())]).run(&[(0, Push(1_460 * 40))]);
    let total: usize = seen.iter().map(|(_, text)| text.parse::<usize>().unwrap()).sum();
    assert_eq!(total, 1_460 * 40);
    // 200, 600 (200 + 400), 1400 … ms after they came: a segment's delay is one of these, and the pieces come in order.
    let moments: Vec<u64> = seen.iter().map(|(micros, _)| micros / 1_000).collect();
    assert!(moments.iter().all(|ms| [0, 200, 600, 1_400, 3_000, 6_200].contains(ms)), "{moments:?}");
    assert!(moments.is_sorted() && moments.len() >= 3, "{moments:?}");
    check(&[Spec::Loss(Share::default())], &[(0, Push(5_000)), (1, Finish)], &[(0, "5000"), (1, "Fin")]);
    // Of single segments on connections of their own, 30% are late, and 9% are later.
    let late: Vec<u64> = (0..10_000)
        .map(|connection| {
            let mut pipe = Pipe::new(slots(&[Spec::Loss(Share::new(0.3).unwrap())], connection, at(0)));
            pipe.push(&[0; 1_000], at(0));
            match pipe.next(at(0)) {
                Next::Send(_) => 0,
                Next::Wait(until) => until.as_millis(),
                other => panic!("{other:?}"),
            }
        })
        .collect();
    let count = |least| late.iter().filter(|ms| **ms >= least).count();
    assert!((2_850..3_150).contains(&count(200)) && (800..1_000).contains(&count(600)), "{} {}", count(200), count(600));
}

#[test]
fn stages_follow_one_another() {
    // Cut into 1,000 bytes, each takes 10 ms at 100 KB/s, then 5 ms.
    let three = [cut(1_000, 0, 0), Spec::Bandwidth(rate(100)), delay(5)];
    check(&three, &[(0, Push(2_200)), (0, Finish)], &[(15_000, "1000"), (25_000, "1000"), (27_000, "200"), (27_000, "Fin")]);
}

#[test]
fn a_change_reschedules_what_waits_from_when_it_came() {
    let steps = |specs: Vec<Spec>| [(0, Push(10)), (40_000, Push(20)), (60_000, Retune(specs))];
    check(&[delay(100)], &steps(vec![]), &[(60_000, "30")]);
    check(&[delay(100)], &steps(vec![delay(70)]), &[(70_000, "10"), (110_000, "20")]);
    check(&[delay(100)], &steps(vec![delay(10)]), &[(60_000, "30")]);
    check(&[delay(100)], &steps(vec![delay(100), Spec::Noop]), &[(100_000, "10"), (140_000, "20")]);
    // Half of the first piece has gone, and stays gone; the limit has counted no byte twice.
    let both = |delay: u64| vec![Spec::LimitData(Size(5_000)), Spec::Bandwidth(rate(100)), self::delay(delay)];
    check(
        &both(0),
        &[(0, Push(3_000)), (15_000, Retune(both(1))), (40_000, Push(3_000))],
        &[(10_000, "1000"), (21_000, "1000"), (31_000, "1000"), (51_000, "1000"), (61_000, "1000"), (61_000, "Close")],
    );
    check(&[Spec::Stall(stall::Stall::forever())], &[(0, Push(10)), (9, Retune(vec![]))], &[(9, "Close")]);
    check(&[Spec::Stall(stall::Stall::forever())], &[(9, Retune(vec![])), (10, Push(10))], &[(10, "10")]);
    check(&[Spec::SlowClose(ms(50))], &[(0, Finish), (9_000, Retune(vec![]))], &[(9_000, "Fin")]);
}

/// Stages that lose nothing, and what is pushed while they change, by a seed; these stages come first and stay.
fn changing(seed: u64, first: &[Spec]) -> Vec<(u64, Do)> {
    let mut draws = rng::Key { seed, ..rng::Key::default() }.stream(rng::Purpose::Bytes);
    let mut below = |n: u64| draws.bits() % n;
    let mut now = 0;
    let mut steps = vec![(0, Retune(first.to_vec()))];
    for _ in 0..30 {
        now += below(5_000);
        if below(3) > 0 {
            steps.push((now, Push(1 + below(3_000) as usize)));
            continue;
        }
        let mut specs = first.to_vec();
        for _ in 0..below(4) {
            specs.push(match below(6) {
                0 => delay(below(20)),
                1 => Spec::Bandwidth(rate(50 + below(1_000))),
                2 => cut(1 + below(900), 0, below(3)),
                3 => Spec::Loss(Share::new(0.2).unwrap()),
                4 => Spec::SlowClose(ms(below(9))),
                _ => Spec::Noop,
            });
        }
        steps.push((now, Retune(specs)));
    }
    steps.extend([(now, Finish), (now + 1, Retune(first.to_vec()))]);
    steps
}

fn sum<'a>(texts: impl Iterator<Item = &'a String>) -> usize {
    texts.filter_map(|text| text.parse::<usize>().ok()).sum()
}

#[test]
fn whatever_changes_no_byte_is_lost_or_sent_twice_and_a_limit_counts_each_once() {
    let mut limited = 0;
    for seed in 0..400 {
        let steps = changing(seed, &[]);
        let came: usize = steps.iter().map(|(_, what)| if let Push(n) = what { *n } else { 0 }).sum();
        let seen = Bench::new(&[]).run(&steps);
        let went = sum(seen.iter().map(|(_, text)| text));
        assert_eq!((went, seen.last().unwrap().1.as_str()), (came, "Fin"), "seed {seed}");
        for first in [vec![Spec::LimitData(Size(20_000))], vec![cut(700, 0, 1), Spec::LimitData(Size(20_000))]] {
            let seen = Bench::new(&[]).run(&changing(seed, &first));
            let end = if came >= 20_000 { "Close" } else { "Fin" };
            let went = sum(seen.iter().map(|(_, text)| text));
            assert_eq!((went, seen.last().unwrap().1.as_str()), (came.min(20_000), end), "seed {seed}, {first:?}");
            limited += usize::from(came >= 20_000);
        }
    }
    assert!(limited > 400, "the limit is reached often enough to tell: {limited}");
}

#[test]
fn what_arrives_goes_without_being_kept_where_nothing_holds_it() {
    let specs = [delay(0), Spec::Bandwidth(rate(1_000_000)), cut(1 << 20, 0, 0), Spec::LimitData(Size(1_010))];
    let mut pipe = Pipe::new(slots(&specs, 0, at(0)));
    assert_eq!(pipe.arrive(1_000, at(0)), 1_000);
    pipe.keep(&[1; 1_000], 1_000);
    assert!(pipe.is_empty() && pipe.bytes.capacity() == 0);
    // Of what the limit cuts off nothing is kept; of what the socket does not take, the rest.
    assert_eq!(pipe.arrive(100, at(1)), 10);
    pipe.keep(&[2; 100], 4);
    assert_eq!((pipe.next(at(1)), pipe.front()), (Next::Send(6), &[2; 6][..]));
    pipe.consume(6);
    assert_eq!(pipe.next(at(1)), Next::End(End::Close));
    let mut late = Pipe::new(slots(&[cut(4, 0, 10)], 0, at(0)));
    assert_eq!(late.arrive(6, at(0)), 4);
    late.keep(&[1, 2, 3, 4, 5, 6], 4);
    assert_eq!((late.next(at(0)), late.next(at(10_000)), late.front()), (Next::Wait(at(10_000)), Next::Send(2), &[5, 6][..]));
}

#[test]
fn a_pipe_is_bounded_and_gives_its_memory_back() {
    let mut pipe = Pipe::new(slots(&[delay(100)], 0, at(0)));
    assert_eq!((pipe.room(), pipe.bytes.capacity()), (chain::MOST, 0));
    pipe.push(&vec![0; chain::MOST], at(0));
    assert_eq!(pipe.room(), 0);
    let Next::Send(n) = pipe.next(at(100_000)) else { panic!("all of it is due") };
    pipe.consume(n - chain::LEAST);
    assert_eq!(pipe.room(), 0, "what waits for its reader keeps others out");
    pipe.consume(chain::LEAST);
    assert_eq!((pipe.room(), pipe.bytes.capacity()), (chain::MOST, 0));
    for n in 0..20_000 {
        if pipe.room() == 0 {
            return;
        }
        pipe.push(&[0], at(100_000 + n));
    }
    panic!("single bytes take more to keep than themselves, and are bounded too");
}

#[test]
fn a_pipe_repeats_and_connections_directions_and_rules_differ() {
    let jitter = Spec::Latency(latency::Delays::new(ms(100), ms(50), latency::Distribution::Normal));
    let steps: Vec<(u64, Do)> = (0..50).map(|n| (n * 100_000, Push(1))).collect();
    let run = |connection, place: usize, stream| {
        let mut pipe = Bench::new(&[]);
        let mut specs = vec![Spec::Noop; place];
        specs.push(jitter.clone());
        let mut slots = slots(&specs, connection, at(0));
        slots.iter_mut().for_each(|slot| slot.draws.stream = stream);
        pipe.pipe = Pipe::new(slots);
        pipe.run(&steps)
    };
    let one = run(1, 0, Stream::Upstream);
    assert_eq!(one, run(1, 0, Stream::Upstream));
    for other in [run(2, 0, Stream::Upstream), run(1, 1, Stream::Upstream), run(1, 0, Stream::Downstream)] {
        assert_ne!(one, other);
    }
}

/// The stages that a toxic gives to each direction of so many connections: how many have it upstream, and downstream.
fn struck(stream: Stream, toxicity: f64) -> (usize, usize) {
    let toxic = Toxic { stream, toxicity, kind: ToxicKind::ResetPeer { timeout: Span::ZERO } };
    let active = Active::new(7, vec![Arc::new(Rule::of_toxic(3, "t".into(), toxic))]);
    let has = |stream| {
        let course = |n| Course { connection: Request::foreign(0, n, 0), judges_requests: false };
        (0..1_000).filter(|n| !course(*n).stages(&active, stream, at(0)).is_empty()).count()
    };
    (has(Stream::Upstream), has(Stream::Downstream))
}

#[test]
fn a_toxic_strikes_its_stream_and_its_share_of_connections() {
    assert_eq!(struck(Stream::Upstream, 1.0), (1_000, 0));
    assert_eq!(struck(Stream::Downstream, 0.0), (0, 0));
    let (up, down) = struck(Stream::Downstream, 0.3);
    assert!(up == 0 && (255..345).contains(&down), "{down}");
}

#[test]
fn a_plans_fault_is_a_stage_of_its_streams_and_its_fleets() {
    use crate::fault::{Distribution, HalfOpen, Latency, LimitData, Loss, SlowClose, Step};
    let latency = Latency { add: ms(5), jitter: Span::ZERO, distribution: Distribution::Uniform, share: Share::ALL };
    let both = Direction::Both;
    let cases = [
        (Fault::Latency(latency), [true, false]),
        (Fault::Bandwidth(Bandwidth { rate: rate(1), stream: Direction::Downstream, overall: false }), [false, true]),
        (Fault::Slicer(slicer::Slicer { size: Size(9), variation: Size(0), delay: Span::ZERO, stream: both }), [true, true]),
        (Fault::LimitData(LimitData { bytes: Size(9), stream: Direction::Upstream }), [true, false]),
        (Fault::SlowClose(SlowClose { delay: ms(5), stream: both }), [true, true]),
        (Fault::Loss(Loss { share: Share::ALL, stream: both }), [true, true]),
        (Fault::HalfOpen(HalfOpen { stream: Direction::Downstream }), [false, true]),
        (Fault::Stall(stall::Stall::forever()), [true, true]),
        (Fault::Close(crate::fault::Close {}), [false, false]),
    ];
    for (fault, want) in cases {
        let scoped = Step { fleets: Some(vec![1]), ..step("x", 0, 1, fault.clone()) };
        let active = Active::new(7, vec![Arc::new(Rule::new(0, scoped))]);
        let stages = |fleet: u16, judges_requests| {
            let course = Course { connection: Request::foreign(fleet, 1, 0), judges_requests };
            [Stream::Upstream, Stream::Downstream].map(|stream| !course.stages(&active, stream, at(0)).is_empty())
        };
        assert_eq!(stages(1, false), want, "{fault:?}");
        assert_eq!(stages(0, false), [false, false], "{fault:?}: another fleet's connection");
        let by_request = matches!(fault, Fault::Latency(_));
        assert_eq!(stages(1, true), if by_request { [false, false] } else { want }, "{fault:?}");
    }
}

#[test]
fn a_rule_counts_each_connection_that_it_harms_and_no_other() {
    let touched = |specs: &[Spec], bytes: usize| {
        let mut pipe = Pipe::new(slots(specs, 0, at(0)));
        for n in 0..3 {
            pipe.push(&vec![0; bytes], at(n));
            while let Next::Send(n) = pipe.next(at(n)) {
                pipe.consume(n);
            }
        }
        pipe.slots.iter().map(|slot| slot.rule.touched()).collect::<Vec<_>>()
    };
    assert_eq!(touched(&[delay(0), delay(5), cut(100, 0, 0)], 10), [0, 1, 0]);
    assert_eq!(touched(&[cut(10, 0, 0), Spec::LimitData(Size(25))], 15), [1, 1]);
}
