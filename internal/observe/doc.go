// Package observe lets the program be watched from outside: who does something says
// where it begins and where it ends, inline, and who watches makes spans and metrics of
// it. It knows nothing of either: package telemetry does.
//
// Nobody watches unless a context says so ([With]). Without one, [Begin] returns nil, and
// every method of a nil [Span] does nothing: what is not watched costs a check.
//
// This room holds what is said of the program to the outside. names.go has every name of
// a span, a metric or an attribute; otlp and prometheus have the two forms in which they
// leave; telemetry keeps them. It imports nothing of ours but what knows texts, so that
// everybody else can import it.
package observe
