// Package memory keeps what clients of the OpenAI API do not see of their
// conversations: the calls that we answered, in the upstream's own messages, and
// calls that wait for an answer. When a client returns, its history is made whole
// again, so that the model remembers what its tools said.
//
// A [Turn] is what happened behind one visible message. It is plain JSON and holds
// neither pointers into requests nor functions, so that any [Store] can keep it:
// [Memory] does in this process, and a database can with two tables, turns and
// keys.
//
// A turn is found again by keys, which the client halves make: the ids of the
// client's own calls, which were minted for it; the exact visible history that it
// ended with, which is that of its request where its answer broke off, or a part of that;
// or, for a request that a client sends again, the request itself.
// What is kept belongs to one owner, and no other can reach it.
//
// # What is stable
//
// [Store], and the JSON of a [Turn]: what one release kept, the next reads. [Turn],
// [Message] and [Call] gain fields. Turn.Undelivered is its client half's own bytes, and of
// no meaning to anybody else.
package memory
