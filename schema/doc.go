// Package schema reads JSON Schemas, and the values they describe, without
// losing anything, and judges values by them.
//
// [Parse] makes an ordered tree of bytes: the order of members, the spelling of
// numbers and unknown keywords survive, duplicate member names are refused, and
// what was not changed is written back byte for byte. Decoding a schema into a
// map or a struct instead loses all of that, and with it tools.
//
// [Admit] decides whether a schema of a stranger can be worked with at all. It
// knows JSON Schema from draft 4 to 2020-12, brings older ones to 2020-12,
// resolves every reference within the document, finds recursion, and refuses
// what is over a limit, leads to the network or nowhere, or never ends. What it
// refuses it names by a JSON pointer.
//
// A [Validator] judges values by an admitted schema, tells in plain words what
// is wrong with them, never fetches anything, and ends in bounded time: each pair
// of a value and a schema is judged once, and what is read is paid for out of a
// [Budget]. [Formats] lists the formats that are judged; a pattern that RE2 does not know is not
// judged either, and [Validator.Unchecked] says so.
package schema
