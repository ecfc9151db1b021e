// Package dialect turns MCP tools into function tools that a given provider
// accepts, and what its model answers back into arguments that the MCP server
// accepts.
//
// A [Dialect] is data: what a provider, or an engine behind the OpenAI wire,
// takes in a schema and on the wire. [For] finds one by name, [ForHost] by the
// address of the API. [Dialect.Plan] converts one tool; the [Plan] holds the
// ready bytes of the function tool, says what was changed and why, and brings
// arguments back:
//
//	d := dialect.ForHost("https://api.openai.com/v1")
//	plan, problem := d.Plan(tool)
//	if problem != nil {
//		// this one tool can not be used; all others can
//	}
//	request.Tools = append(request.Tools, plan.Function())
//	…
//	arguments, repairs, problem := plan.Decode(call.Function.Arguments, choice.FinishReason)
package dialect
