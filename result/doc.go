// Package result puts what an MCP server answered into the form that a model
// reads best: one small, complete JSON value of bounded size, with a way to the
// rest.
//
// # Messages
//
// A [Shape] says how a model wants its results; the zero Shape is right for
// most. [Shape.Message] takes a call and its result and returns the content of
// the tool message:
//
//	{"status":"success","data":{…},"meta":{"tool":…,"server":…,"duration_ms":…,"cached":…}}
//
// The members stand in this order. data is what the tool said, with nothing
// renamed and nothing made up:
//
//   - structuredContent, when that key is present, even if it is null, unless the
//     call asked for text by the tool's own response_format "markdown";
//   - else the JSON of the only text block, if the text is JSON;
//   - else the text;
//   - else the content blocks, as an array of typed parts.
//
// Blocks beside structuredContent that say more than it does stand in
// meta.parts. What such a block carries is not said a second time in the data, which
// names its place: "(see /meta/parts/0)" for the bytes of a picture. When the result is an error, status is "error" and data holds
// what the model needs to do better: error (a code), message, and where they
// apply missing_field, invalid, retry_after (seconds), audit_id, and the tool's
// own structuredContent. An empty result is a success with data null, and
// meta.note says so.
//
// Images, audio and blobs become {format}_base64 with mime_type when they are
// short, images become [Message.Images] where the model sees them, and what is
// longer gets a handle. The bytes decide what they are, not the MIME type that
// came with them. Links are data and are never fetched. Blocks whose audience
// is the user alone leave a stub for the model and are found in
// [Message.People]. Blocks of unknown types are passed on as they are; _meta is
// for programs and never reaches a model.
//
// The [Profile] decides on the form around this: [Envelope] as above, [Text]
// for models that read text better than JSON, [Structured] for the data alone,
// [Raw] for the MCP result itself. [ProfileFor] knows a few models.
//
// # Size
//
// A message has at most Shape.Limit characters, and stays complete, valid JSON
// in it. What is too long is cut by its structure: lists lose elements from the
// end, the members of an object share the room, strings lose their tail, towers
// of nested values their depth. Parts with an annotated priority are cut in its
// order. Where there is an output schema and Shape.Check, a cut is looked for
// that leaves the data valid. meta.truncated then tells, for each cut, the JSON
// pointer from the root of the message, the unit, how much there is in all, and
// how much is shown:
//
//	"truncated":{"handle":"7x…","characters":524288,
//	  "cut":[{"pointer":"/data/items","unit":"items","total":5000,"shown":310}],"hint":…}
//
// With Shape.Shelf the whole is kept for a while, and the tool read_more, which
// is the toolset [Shelf.For] a caller, or one [Shelf.Around] others, gives the
// rest page by page: by items, members, characters, lines, bytes or characters of
// JSON text. The pages put together are the whole, exactly. A conversation should
// offer the tool once a message had a handle, and not before.
//
// # Hostile results
//
// Results come from outside. Control characters, overrides of the writing
// direction, tag characters and other invisible ones are spelled as \u escapes,
// so that model and people see them while a program that parses the message
// gets the same value. Escapes of other characters, as servers write them that
// send nothing but ASCII, are undone. Lone surrogates and invalid UTF-8 become U+FFFD. Nesting
// deeper than 128 levels is cut. Time and memory grow with the size of the
// result and not faster: a result is scanned once, as raw bytes, and never
// decoded as a whole, which also keeps order, big integers and the spelling of
// numbers. [Guide] tells a model that data is not instructions.
//
// # The MCP door
//
// [Shape.Dual] and [WrapSchema] make results for MCP clients: structuredContent, and
// as text what of it the other blocks do not say, so that either kind of client can
// read them. [Dual] does it without limits.
package result
