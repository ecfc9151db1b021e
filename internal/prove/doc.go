// Package prove looks for calls on which a model and an MCP server cannot agree,
// one tool and one dialect at a time.
//
// Between the two stand a conversion, which [dialect.Plan] does, and an engine,
// which may hold the model to the schema that is sent, or to a part of it. A
// [Prover] searches for witnesses of two kinds: a call that the model can write
// and the server refuses, and a call that the server takes and the model cannot
// write. What it finds it makes small, and where it finds nothing it says how hard
// it looked. That is a proof of faults, never of their absence, except where a
// tool has so few calls that all of them were tried.
//
// What a model can write an [Engine] says. [Sent] takes the schema that is sent as
// the law, which is right where an API enforces schemas, and kind to the model
// where nothing is enforced. [Find] finds engines of others that are installed
// beside us: programs that say what a real grammar engine lets a model write.
//
// Candidates come from the two schemas, the server's and the one that is sent: the
// smallest call and the fullest one, each with one place changed to every value at
// which something may change (the ends of ranges, and beyond them, characters that
// must be escaped, every branch and every value of an enum), then with two places
// changed, then whatever the engine itself makes up. The same tool and the same
// seed give the same proof.
package prove
