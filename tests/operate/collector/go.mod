module collector

go 1.23.0

require (
	github.com/open-telemetry/opentelemetry-collector-contrib/exporter/prometheusremotewriteexporter v0.128.0
	go.opentelemetry.io/collector/component v1.34.0
	go.opentelemetry.io/collector/confmap v1.34.0
	go.opentelemetry.io/collector/confmap/provider/fileprovider v1.34.0
	go.opentelemetry.io/collector/exporter v0.128.0
	go.opentelemetry.io/collector/exporter/otlphttpexporter v0.128.0
	go.opentelemetry.io/collector/otelcol v0.128.0
	go.opentelemetry.io/collector/processor v1.34.0
	go.opentelemetry.io/collector/processor/batchprocessor v0.128.0
	go.opentelemetry.io/collector/receiver v1.34.0
	go.opentelemetry.io/collector/receiver/otlpreceiver v0.128.0
)
