// Package show says what people see of what is judged: definitions that wait and how they
// differ from what was approved, calls that wait for an approval with their arguments,
// records of the audit log.
//
// Each is a tree first ([Server], [Definition], [Approval], [Record]) and then text of it
// for a terminal (the methods Text and Line). A console renders the same tree in its own
// way: all that servers, models and callers wrote stands in it with the characters that
// show nothing spelled out, nothing of arguments and differences is left out, and what a
// page has to escape is still for the page to escape. Times are times, for whoever renders
// them to put into the zone of their reader; text here is in that of the process.
//
// Nothing is read from a store here, and nothing is decided.
package show
