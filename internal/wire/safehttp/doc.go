// Package safehttp makes HTTP clients for addresses that somebody else chose:
// the operator, in the configuration, or a server, in what it answered.
//
// [NewClient] makes a client whose waits and headers are bounded, and which
// takes credentials to no place that they were not meant for: a redirect to
// another origin loses every header that is not known to be harmless, one from
// https to http is refused, and so is one that would turn a POST into a GET.
//
// With [Options.Untrusted] the client also refuses addresses that are not
// public, and every redirect. The check is made on the address that is dialled,
// after names were resolved, so a name that resolves to something else the
// second time gains nothing. Proxies are not used then, because a proxy would
// resolve the name itself.
//
// Bodies are the caller's: [ReadAll] and [LimitBody] bound them. [Redact] takes
// addresses out of errors that may be shown.
package safehttp
