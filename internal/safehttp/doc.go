// Package safehttp makes HTTP clients for addresses that somebody else chose:
// the operator, in the configuration, or a server, in what it answered.
package safehttp
