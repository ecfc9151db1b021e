// Package rehearsal is a model that is none: an OpenAI-compatible Chat
// Completions server whose answers follow from the request alone. Use it in
// tests of programs that talk to a language model, and wherever a demo must
// run without a key, a network or a bill. The same request always gets the
// same bytes, ids included; only the field created follows the clock.
//
//	srv := httptest.NewServer(&rehearsal.Model{})
//	client := openai.NewClient(option.WithBaseURL(srv.URL + "/v1"), …)
//
// A [Model] is also an [http.RoundTripper], for programs that let their HTTP
// client be chosen; nothing listens then:
//
//	client := &http.Client{Transport: &rehearsal.Model{}}
//
// It never pretends: the model is called rehearsal, system_fingerprint is
// [Fingerprint], and every completion (in a stream, every chunk with a
// finish_reason) carries [Note] in dragoman.note.
//
// # Telling it what to do
//
// The last message of the user may hold directives, one to a line; other
// lines are ignored then.
//
//	CALL name {"json": "arguments"}
//	SAY text
//	THEN
//
// Calls with no THEN between them are made in one message, side by side. The
// name may be a part of the tool's name as long as only one tool has it;
// otherwise the answer is a text that names the candidates. Arguments may be
// missing, which is {}, or be no JSON at all: they are passed on as they
// stand. SAY before a CALL is text beside the calls, after it the text of the
// next message; several in a row are its lines. A script that ends in calls is
// followed by an answer that tells what the results were. This one makes two
// calls, then one, then says its line:
//
//	SAY Let me look.
//	CALL get_weather {"city": "Beijing"}
//	CALL get_weather {"city": "Shanghai"}
//	THEN
//	CALL calculate_sum {"a": 22, "b": 26}
//	SAY Done.
//
// Where in the script a request stands is told by its history: the number of
// assistant messages with calls after the last message of the user. With
// parallel_tool_calls false, and with the old functions, each call is a
// message of its own.
//
// # Left to itself
//
// Without directives it compares the message with the names, descriptions and
// parameters of the tools, word by word (two characters at a time in Chinese,
// Japanese and Korean), calls the one that fits best, and fills its required
// arguments from what is left of the message: name=value, allowed values,
// quoted strings, numbers, paths, ids, names. Optional arguments are filled only
// where the message gives them as name=value or says an allowed value. What it
// cannot fill it asks for; where no tool fits it says so. That is for demos: it
// knows no language, and a test that has to have a certain call says it with a
// directive. After one round of calls it answers with what the results say, in
// Chinese if the question is, else in English.
//
// It honours tool_choice (a named or required tool is called in the first
// round, with made-up arguments if need be; directives go before), n, stop,
// max_tokens and max_completion_tokens (a token is a word, or twelve
// characters of one, or two Chinese ones), response_format (the answer, or an
// instance of the schema filled from the results), stream_options, logprobs
// (every token was certain: its logarithm is 0, and top_logprobs names no
// other), and the old functions. Sampling parameters change nothing.
//
// # As strict as the strictest
//
// What OpenAI refuses is refused in its words: results that do not follow
// their calls, call ids over 40 characters, names with dots, more than 128
// tools, schemas without properties or items, strict schemas that are not
// closed, tool_choice without tools. So is a history whose arguments are not
// a JSON object, which DashScope, Ollama and others refuse. [Model.Lenient]
// turns these checks off. Any model name is served and echoed; no key is
// asked for. There is no Responses API: 404.
//
// # Misbehaving
//
// Ask for trouble with [Model.Misbehave], or in one request by its model:
//
//	"model": "rehearsal:slow-stream+cut-arguments"
//
// [Misbehaviours] lists what there is, and [Misbehaviour.Means] says what each
// does: errors, broken streams, invalid arguments, and the habits of real
// providers that clients trip over.
package rehearsal
