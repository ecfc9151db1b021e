package dialect_test

import (
	"bytes"
	"encoding/json"
	"fmt"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
)

// The tool that many first try to convert: defaults leave the schema, and the
// descriptions tell them.
func Example() {
	d, err := dialect.For("openai")
	if err != nil {
		fmt.Println(err)
		return
	}
	plan, problem := d.Plan(dragoman.Tool{
		Name:        "gapfill_model",
		Description: "Gapfill a metabolic model to enable growth on a specified media.",
		InputSchema: json.RawMessage(`{
			"type": "object",
			"properties": {
				"model_id": {"type": "string", "description": "Model identifier with .gf suffix"},
				"media_id": {"type": "string", "description": "Media identifier or predefined name"},
				"target_reaction": {"type": "string", "description": "Target reaction to enable", "default": "bio1"},
				"minimum_fraction": {"type": "number", "description": "Minimum growth fraction", "default": 0.01}
			},
			"required": ["model_id", "media_id"]
		}`),
	})
	if problem != nil {
		fmt.Println(problem.Message)
		return
	}
	show(plan.Function())
	// Output:
	// {
	//   "type": "function",
	//   "function": {
	//     "name": "gapfill_model",
	//     "description": "Gapfill a metabolic model to enable growth on a specified media.",
	//     "parameters": {
	//       "type": "object",
	//       "properties": {
	//         "model_id": {
	//           "type": "string",
	//           "description": "Model identifier with .gf suffix"
	//         },
	//         "media_id": {
	//           "type": "string",
	//           "description": "Media identifier or predefined name"
	//         },
	//         "target_reaction": {
	//           "type": "string",
	//           "description": "Target reaction to enable (default: 'bio1')"
	//         },
	//         "minimum_fraction": {
	//           "type": "number",
	//           "description": "Minimum growth fraction (default: 0.01)"
	//         }
	//       },
	//       "required": [
	//         "model_id",
	//         "media_id"
	//       ]
	//     },
	//     "strict": false
	//   }
	// }
}

// Enum values are told in the description too, and what the tool returns.
func ExampleDialect_Plan_enum() {
	plan, problem := dialect.ForHost("https://api.openai.com/v1").Plan(dragoman.Tool{
		Name:        "build_model",
		Description: "Build a metabolic model from genome annotation",
		InputSchema: json.RawMessage(`{"type":"object","properties":{
			"genome_source":{"type":"string","enum":["rast_id","fasta_file","annotation_dict"],"description":"Source type for genome data"}}}`),
		OutputSchema: json.RawMessage(`{"type":"object","properties":{"status":{},"model_id":{},"stats":{}}}`),
	})
	if problem != nil {
		fmt.Println(problem.Message)
		return
	}
	show(plan.Function())
	// Output:
	// {
	//   "type": "function",
	//   "function": {
	//     "name": "build_model",
	//     "description": "Build a metabolic model from genome annotation. Returns JSON with fields status, model_id, stats.",
	//     "parameters": {
	//       "type": "object",
	//       "properties": {
	//         "genome_source": {
	//           "type": "string",
	//           "enum": [
	//             "rast_id",
	//             "fasta_file",
	//             "annotation_dict"
	//           ],
	//           "description": "Source type for genome data. Must be one of: 'rast_id', 'fasta_file', 'annotation_dict'"
	//         }
	//       }
	//     },
	//     "strict": false
	//   }
	// }
}

// A strict tool has all its properties required: null stands for what the
// model leaves out, and does not reach the server.
func ExamplePlan_Decode() {
	d, err := dialect.For("openai-strict")
	if err != nil {
		fmt.Println(err)
		return
	}
	plan, _ := d.Plan(dragoman.Tool{
		Name:        "find_restaurant",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"},"cuisine":{"type":"string"},"seats":{"type":"integer"}},"required":["city"]}`),
	})
	fmt.Printf("%s\n", plan.Parameters())
	for _, raw := range []string{
		`{"city":"Tokyo","cuisine":null,"seats":null}`,
		"```json\n{'city': 'Tokyo', 'seats': \"2\",}\n```",
		`{"cuisine":"sushi","seats":null}`,
		`{"city":"Tok`,
	} {
		arguments, repairs, problem := plan.Decode(raw, "tool_calls")
		if problem != nil {
			fmt.Println(problem.Message)
			continue
		}
		fmt.Printf("%s %v\n", arguments, repairs)
	}
	// Output:
	// {"type":"object","properties":{"city":{"type":"string"},"cuisine":{"type":["string","null"]},"seats":{"type":["integer","null"]}},"required":["city","cuisine","seats"],"additionalProperties":false}
	// {"city":"Tokyo"} []
	// {"city":"Tokyo","seats":2} [{codeFence } {quotes } {trailingComma } {numberFromString /seats}]
	// The arguments do not fit the tool's input schema: /city is missing: expected string.
	// The arguments end before they are complete, so the call was not made. Make it again, with shorter arguments if they were long.
}

// One tool that cannot be used does not keep the others from being offered.
func ExampleDialect_Convert() {
	d, err := dialect.For("gemini")
	if err != nil {
		fmt.Println(err)
		return
	}
	doc, err := d.Convert(json.RawMessage(`{"tools":[
		{"name":"set.volume","description":"Set the volume.","inputSchema":{"type":"object","properties":{"level":{"type":"integer","enum":[0,5,10]}},"required":["level"]}},
		{"name":"broken","inputSchema":{"type":"object","properties":{"x":{"$ref":"https://example.com/x.json"}}}}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s\n", doc.Tools[0])
	for _, r := range doc.Report {
		fmt.Printf("%s %s %q\n", r.Tool, r.Pass, r.Pointer)
	}
	for _, q := range doc.Quarantined {
		fmt.Println(q.Tool, "-", q.Reason)
	}
	arguments, _, _ := doc.Plans[0].Decode(`{"level":"5"}`, "")
	fmt.Printf("%s\n", arguments)
	// Output:
	// {"type":"function","function":{"name":"set_volume","description":"Set the volume.","parameters":{"type":"object","properties":{"level":{"type":"string","enum":["0","5","10"],"description":"Must be one of: '0', '5', '10'"}},"required":["level"]}}}
	// set.volume writeEnumsAsText "/properties/level"
	// set.volume describeEnums "/properties/level"
	// set.volume renameTool ""
	// broken - The input schema, at "/properties/x/$ref", refers to "https://example.com/x.json", which is not in the schema; nothing is fetched.
	// {"level":5}
}

// What one request carries is what its provider takes. A call of the model's finds
// its tool, and the plan for its arguments, by the name that the model wrote.
func ExampleDocument_Fit() {
	d, err := dialect.For("openai")
	if err != nil {
		fmt.Println(err)
		return
	}
	doc := d.ConvertTools([]dragoman.Tool{
		{Name: "files__read", Original: "read", InputSchema: json.RawMessage(`{"type":"object","properties":{"lines":{"type":"integer"}}}`)},
		{Name: "files__write", Original: "write", InputSchema: json.RawMessage(`{"type":"object"}`)},
		{Name: "web__fetch", Original: "fetch", InputSchema: json.RawMessage(`{"type":"object"}`)},
	})
	doc.Fit(d, dialect.Budget{Tools: 2}) // the zero Budget is what the provider takes
	fmt.Println(len(doc.Tools), "tools")
	for _, left := range doc.LeftOut {
		fmt.Println(left.Tool, "is left out")
	}

	tool, plan := doc.Find("Files__Read")
	arguments, _, problem := plan.Decode(`{"lines":"20"}`, "tool_calls")
	fmt.Printf("%s %s %v\n", tool.Name, arguments, problem)
	// Output:
	// 2 tools
	// web__fetch is left out
	// files__read {"lines":20} <nil>
}

func show(raw json.RawMessage) {
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(b.String())
}

// A dialect of one's own, for an API that takes what OpenAI's does, but no patterns and
// twenty tools at most. A program that reads no file sets the fields of the *[dialect.Spec].
func ExampleTable_Derive() {
	table, err := dialect.Builtin().Derive("house", "openai", func(spec any) error {
		return json.Unmarshal([]byte(`{
			"title": "Our own models", "hosts": ["llm.example.com"],
			"rules": {"cells": {"pattern": {"support": "rejected", "source": "tried"}}},
			"wire": {"max_tools": 20}
		}`), spec)
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	d := table.ForHost("https://llm.example.com/v1")
	plan, problem := d.Plan(dragoman.Tool{Name: "find", InputSchema: json.RawMessage(`{
		"type": "object", "properties": {"code": {"type": "string", "pattern": "^[A-Z]{3}$"}}, "required": ["code"]}`)})
	if problem != nil {
		fmt.Println(problem.Message)
		return
	}
	fmt.Println(d.Name(), d.Wire().MaxTools)
	fmt.Println(string(plan.Parameters()))
	_, _, problem = plan.Decode(`{"code":"abc"}`, "tool_calls")
	fmt.Println(problem.Code) // what is not sent is judged all the same
	// Output:
	// house 20
	// {"type":"object","properties":{"code":{"type":"string","description":"(pattern ^[A-Z]{3}$)"}},"required":["code"]}
	// invalid_arguments
}
