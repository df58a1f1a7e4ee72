//! Families of figures as OpenTelemetry has them: a request of OTLP, in protobuf.
//!
//! Names are those of Prometheus without `_total`, which is what its exporters add again. Everything is cumulative since the run began.

use crate::exposition::{Family, Kind, Sample, Value};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum,
    number_data_point,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message;

/// When a run began, and when its figures were taken, in nanoseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// When it began.
    pub began: u64,
    /// When they were taken.
    pub at: u64,
}

/// The body of a request that hands over the families.
pub fn request(families: &[Family], taken: Taken) -> Vec<u8> {
    let scope = InstrumentationScope {
        name: env!("CARGO_PKG_NAME").into(),
        version: env!("CARGO_PKG_VERSION").into(),
        ..InstrumentationScope::default()
    };
    let metrics = families.iter().filter(|family| !family.samples.is_empty()).map(|family| metric(family, taken)).collect();
    let resource = Resource { attributes: vec![attribute("service.name", env!("CARGO_PKG_NAME"))], ..Resource::default() };
    let scoped = ScopeMetrics { scope: Some(scope), metrics, ..ScopeMetrics::default() };
    let resource_metrics =
        vec![ResourceMetrics { resource: Some(resource), scope_metrics: vec![scoped], ..ResourceMetrics::default() }];
    ExportMetricsServiceRequest { resource_metrics }.encode_to_vec()
}

fn metric(Family { name, kind, help, samples }: &Family, taken: Taken) -> Metric {
    let name = name.strip_suffix("_total").unwrap_or(name);
    let unit = if name.ends_with("_seconds") { "s" } else { "1" };
    let aggregation_temporality = AggregationTemporality::Cumulative.into();
    let numbers = || samples.iter().filter_map(|sample| number(sample, taken)).collect();
    let data = match kind {
        Kind::Counter => Data::Sum(Sum { data_points: numbers(), aggregation_temporality, is_monotonic: true }),
        Kind::Gauge => Data::Gauge(Gauge { data_points: numbers() }),
        Kind::Histogram => {
            let data_points = samples.iter().filter_map(|sample| buckets(sample, taken)).collect();
            Data::Histogram(Histogram { data_points, aggregation_temporality })
        }
    };
    Metric { name: name.into(), description: (*help).into(), unit: unit.into(), data: Some(data), ..Metric::default() }
}

fn number(Sample { labels, value }: &Sample, taken: Taken) -> Option<NumberDataPoint> {
    let value = match value {
        Value::Count(count) => number_data_point::Value::AsInt(i64::try_from(*count).unwrap_or(i64::MAX)),
        Value::Level(level) => number_data_point::Value::AsDouble(*level),
        Value::Buckets(_) => return None,
    };
    Some(NumberDataPoint {
        attributes: attributes(labels),
        start_time_unix_nano: taken.began,
        time_unix_nano: taken.at,
        value: Some(value),
        ..NumberDataPoint::default()
    })
}

fn buckets(Sample { labels, value }: &Sample, taken: Taken) -> Option<HistogramDataPoint> {
    let Value::Buckets(buckets) = value else { return None };
    Some(HistogramDataPoint {
        attributes: attributes(labels),
        start_time_unix_nano: taken.began,
        time_unix_nano: taken.at,
        count: buckets.counts.iter().sum(),
        sum: Some(buckets.sum),
        bucket_counts: buckets.counts.clone(),
        explicit_bounds: buckets.bounds.to_vec(),
        ..HistogramDataPoint::default()
    })
}

fn attributes(labels: &[(&'static str, String)]) -> Vec<KeyValue> {
    labels.iter().map(|(name, value)| attribute(name, value)).collect()
}

fn attribute(key: &str, value: &str) -> KeyValue {
    let value = Some(AnyValue { value: Some(any_value::Value::StringValue(value.into())) });
    KeyValue { key: key.into(), value, ..KeyValue::default() }
}
