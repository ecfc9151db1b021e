// Package schema reads JSON Schemas, and the values they describe, without
// losing anything, and judges values by them.
//
// [Parse] makes an ordered tree of bytes: the order of members, the spelling of
// numbers and unknown keywords survive, duplicate member names are refused, and
// a tree that was not changed is written back byte for byte. Decoding a schema
// into a map or a struct instead loses all of that, and with it tools.
//
// A [Validator] judges values by a schema exactly as the server that wrote the
// schema would, tells in plain words what is wrong with them, and never fetches
// anything.
package schema
