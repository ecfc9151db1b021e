// Package otlp sends spans and metrics to a collector: OTLP 1.10 over HTTP, in the binary
// form of Protocol Buffers, which every receiver takes.
//
// It writes the bytes itself. The exporters of OpenTelemetry bring the whole of gRPC, also
// those that use HTTP: more than a fifth of this program, for two messages of a few dozen
// fields (docs/decisions/0300). That the bytes are those that others read is tested with
// the types that are generated from the definitions.
package otlp
