// Package toolkit is for people who write MCP servers in Go. It sits on the
// official SDK and makes the good habits of a server the easy way: a schema from
// the types that the code has anyway, strict arguments, errors that a model can
// act on, results of a bounded length, pages, limits, an audit trail, and one
// Main for standard input and output and for HTTP in both eras of the protocol.
//
//	type Query struct {
//		City string `json:"city" desc:"City in English or Chinese, such as Chengdu" min:"1" max:"100"`
//		Days int    `json:"days" desc:"Days ahead" default:"3" min:"1" max:"7"`
//	}
//
//	type Forecast struct {
//		City string   `json:"city" md:"name"`
//		Days []string `json:"days" desc:"One line for each day"`
//	}
//
//	func main() {
//		s := toolkit.NewServer(toolkit.Options{Service: "weather", Version: "1.4.0"})
//		toolkit.Add(s, toolkit.Tool{
//			Name:        "weather_get_forecast",
//			Description: "Returns the forecast for one city, at most a week ahead.",
//			Hints:       toolkit.Hints{ReadOnly: toolkit.Yes, Destructive: toolkit.No, Idempotent: toolkit.Yes, OpenWorld: toolkit.Yes},
//			Examples:    []toolkit.Example{{Ask: "Will it rain in Rome tomorrow?", Arguments: `{"city":"Rome","days":1}`}},
//		}, forecast)
//		toolkit.Main(s)
//	}
//
//	func forecast(ctx context.Context, q Query) (Forecast, error) { … }
//
// A guide with many examples is docs/toolkit.md.
//
// # From types to schemas
//
// The fields of a struct become the properties of a JSON Schema (2020-12), in
// their order, under the name in the json tag. Embedded structs are flattened,
// types that contain themselves become $defs, time.Time is a date-time, []byte is
// base64, any and json.RawMessage admit everything. Arguments admit no other
// properties.
//
// A field of the arguments is required unless it is a pointer, says omitempty or
// omitzero, or has a default. A field of a result is required unless it says
// omitempty or omitzero; a pointer there without either may be null. These tags
// say more:
//
//	desc      description; write one for every argument
//	title     name for people, also in Markdown
//	enum      the values allowed, separated by commas; for lists, of the items
//	default   filled in when the argument is absent; plain text or JSON
//	example   a value to show
//	min, max  bounds: of the number, of the characters, of the items, of the members
//	above, below, multiple   exclusive bounds and multipleOf
//	pattern, format          for texts, or for the items of a list of texts
//	unique    "true": the items of a list differ
//	optional, required, nullable   "true" overrides the rules above, "false" too for nullable
//	header    x-mcp-header: the client repeats the argument in an HTTP header
//	md        Markdown: "name", "id", "time", "millis", or "-" for nothing
//
// The formats of JSON Schema, such as date-time, date, email, uri and uuid, are
// enforced. An [Optional] tells absent, null and zero apart. A type whose JSON is its own
// business says its schema itself: see [Schemer]. [Check] holds any value to its
// tags.
//
// # What a call goes through
//
// The rights of the caller, then limits on the rate, of all and of each user, then
// the arguments: they are read strictly (no duplicate names, no unknown ones,
// valid UTF-8, bounded depth and numbers), defaults are filled in, and everything
// is checked against the very schema that was announced. The model is told all
// fields that are wrong and what was expected. Then [Middleware], and in it the
// function, runs, under a time limit, in a context that ends when the caller
// cancels. Errors made with [Invalid], [NotFound], [Refuse] and [RetryAfter] are
// read by the model; any other error, and a panic, is logged under an id, and the
// model reads the id. The result is checked against its schema, cut by structure
// if it has more than 25,000 characters, and sent twice, as structuredContent and
// as text. One line of JSON in the audit trail tells of the call, without the
// values of arguments.
//
// # Who asks
//
// [RequestFrom] tells a function who its [Caller] is: the owner, on standard input
// and output; a user, who showed an API key or a token over HTTP; or nobody in
// particular. What a tool, a resource or a prompt requires is said in its
// Requires, as rights such as "tickets:write"; keys are granted rights, tokens
// have them as scopes, and the owner has them all. [HTTP] says how users are
// recognised: [OpenKeys], [OAuth] with toolkit/jwt, or a function of one's own.
//
// # Asking the user
//
// [Ask] has a person fill in a form, in one line and in both eras: the function is
// called again with the answer.
//
// # Beyond one server
//
// [Server.Include] makes a server of several. Package toolkit/openapi makes tools
// of an OpenAPI document.
//
// # What is refused at the start
//
// [Server.Validate] lists everything at once: names that are not
// {service}_{action}_{resource}, missing descriptions, hints that are not stated,
// missing or wrong examples, types that have no schema, tags that contradict each
// other, keys that are not in the environment. Nothing panics.
//
// # What is stable
//
// Everything that is exported here, with the words that models and clients are told:
// servers are compiled against it. What a release changes stands in CHANGELOG with what to
// write instead, and the old name stays for one release.
package toolkit
