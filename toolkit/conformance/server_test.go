package conformance

//lint:file-ignore SA1019 the suite wants deprecated features (roots, sampling, logging), too.

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dragoman-mcp/dragoman/toolkit"
)

type (
	none   struct{}
	result = *mcp.CallToolResult
)

var hints = toolkit.Hints{ReadOnly: toolkit.Yes, Destructive: toolkit.No, Idempotent: toolkit.Yes, OpenWorld: toolkit.No}

// tool adds a tool of the suite's. Their names are the suite's choice.
func tool[In, Out any](s *toolkit.Server, name string, f func(context.Context, In) (Out, error), examples ...toolkit.Example) {
	toolkit.Add(s, toolkit.Tool{Name: name, Description: "For the scenario of that name.", Hints: hints, Examples: examples}, f)
}

// newServer makes the server that the suite expects: its tools, prompts and
// resources by their names.
func newServer(t *testing.T) *toolkit.Server {
	s := toolkit.NewServer(toolkit.Options{Name: "conformance-mcp-server", Verbs: []string{"test", "json"}, ClientLog: true})
	contents(s)
	questions(s)
	rounds(s)
	changes(s)
	resources(s)
	prompts(t, s)
	return s
}

// Bytes that are a picture of one pixel, and a sound of none.
var (
	pixel, _ = base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
	silence  = []byte("RIFF$\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00@\x1f\x00\x00@\x1f\x00\x00\x01\x00\x08\x00data\x00\x00\x00\x00")
)

func contents(s *toolkit.Server) {
	tool(s, "test_simple_text", func(context.Context, none) (toolkit.Text, error) {
		return "This is a simple text response for testing.", nil
	})
	tool(s, "test_image_content", func(context.Context, none) (toolkit.Content, error) {
		return toolkit.Content{toolkit.Image(pixel, "image/png")}, nil
	})
	tool(s, "test_audio_content", func(context.Context, none) (toolkit.Content, error) {
		return toolkit.Content{toolkit.Audio(silence, "audio/wav")}, nil
	})
	tool(s, "test_embedded_resource", func(context.Context, none) (toolkit.Content, error) {
		block, err := toolkit.Embed("test://embedded-resource", toolkit.Contents{Text: "This is an embedded resource content."})
		return toolkit.Content{block}, err
	})
	tool(s, "test_multiple_content_types", func(context.Context, none) (toolkit.Content, error) {
		block, err := toolkit.Embed("test://mixed-content-resource", toolkit.Contents{Text: `{"test":"data","value":123}`, MIMEType: "application/json"})
		return toolkit.Content{toolkit.Words("Multiple content types test:"), toolkit.Image(pixel, "image/png"), block}, err
	})
	tool(s, "test_tool_with_logging", func(ctx context.Context, _ none) (toolkit.Text, error) {
		for _, message := range []string{"started", "processing", "completed"} {
			toolkit.Log(ctx, "info", message)
		}
		return "logged", nil
	})
	tool(s, "test_tool_with_progress", func(ctx context.Context, _ none) (toolkit.Text, error) {
		for _, done := range []float64{0, 50, 100} {
			toolkit.Progress(ctx, done, 100, fmt.Sprintf("%.0f of 100", done))
		}
		return toolkit.Text(fmt.Sprint(toolkit.RequestFrom(ctx).SDK.Params.GetProgressToken())), nil
	})
	tool(s, "test_error_handling", func(context.Context, none) (toolkit.Text, error) {
		return "", errors.New("this is meant to fail")
	})
	tool(s, "json_schema_2020_12_tool", func(context.Context, wide) (toolkit.Text, error) { return "called", nil })
	type header struct {
		Region string `json:"region,omitempty" desc:"Repeated in a header" header:"Region"`
		Level  int    `json:"level,omitempty"`
	}
	tool(s, "test_x_mcp_header", func(_ context.Context, in header) (toolkit.Text, error) {
		return toolkit.Text("region " + in.Region), nil
	}, toolkit.Example{Ask: "west", Arguments: `{"region":"us-west1"}`})
	tool(s, "test_streaming_elicitation", func(context.Context, none) (toolkit.Text, error) { return "nothing is asked", nil })
	tool(s, "test_logging_tool", func(ctx context.Context, _ none) (toolkit.Text, error) {
		toolkit.Log(ctx, "info", "only for who asked")
		return "logged", nil
	})
}

// wide has a schema with keywords that no tag has.
type wide struct{}

func (wide) JSONSchema() json.RawMessage {
	return json.RawMessage(`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",` +
		`"$defs":{"address":{"$anchor":"addressDef","type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},` +
		`"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},"contactMethod":{"type":"string","enum":["phone","email"]},` +
		`"phone":{"type":"string"},"email":{"type":"string"}},"allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],` +
		`"if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},"then":{"required":["phone"]},` +
		`"else":{"required":["email"]},"additionalProperties":false}`)
}

// form is what a person is asked to fill in.
func form(properties string, required ...string) json.RawMessage {
	names, err := json.Marshal(append([]string{}, required...))
	if err != nil {
		panic(err) // strings have a form in JSON
	}
	return json.RawMessage(fmt.Sprintf(`{"type":"object","properties":%s,"required":%s}`, properties, names))
}

func ask(ctx context.Context, message string, schema json.RawMessage) (toolkit.Text, error) {
	res, err := toolkit.RequestFrom(ctx).SDK.Session.Elicit(ctx, &mcp.ElicitParams{Message: message, RequestedSchema: schema})
	if err != nil {
		return "", err
	}
	return toolkit.Text(fmt.Sprintf("Elicitation completed: action=%s, content=%v", res.Action, res.Content)), nil
}

// questions are those that a server asks while a call runs, in the legacy era.
func questions(s *toolkit.Server) {
	type prompt struct {
		Prompt string `json:"prompt"`
	}
	tool(s, "test_sampling", func(ctx context.Context, in prompt) (toolkit.Text, error) {
		res, err := toolkit.RequestFrom(ctx).SDK.Session.CreateMessage(ctx, &mcp.CreateMessageParams{
			Messages: []*mcp.SamplingMessage{{Role: "user", Content: toolkit.Words(in.Prompt)}}, MaxTokens: 100,
		})
		if err != nil {
			return "", err
		}
		text, _ := res.Content.(*mcp.TextContent)
		return toolkit.Text("LLM response: " + text.Text), nil
	}, toolkit.Example{Ask: "x", Arguments: `{"prompt":"x"}`})
	type question struct {
		Message string `json:"message"`
	}
	tool(s, "test_elicitation", func(ctx context.Context, in question) (toolkit.Text, error) {
		return ask(ctx, in.Message, form(`{"username":{"type":"string"},"email":{"type":"string"}}`, "username", "email"))
	}, toolkit.Example{Ask: "x", Arguments: `{"message":"x"}`})
	tool(s, "test_elicitation_sep1034_defaults", func(ctx context.Context, _ none) (toolkit.Text, error) {
		return ask(ctx, "Defaults", form(`{"name":{"type":"string","default":"John Doe"},"age":{"type":"integer","default":30},`+
			`"score":{"type":"number","default":95.5},"status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},`+
			`"verified":{"type":"boolean","default":true}}`))
	})
	tool(s, "test_elicitation_sep1330_enums", func(ctx context.Context, _ none) (toolkit.Text, error) {
		three := `"enum":["option1","option2","option3"]`
		titled := `[{"const":"value1","title":"First Option"},{"const":"value2","title":"Second Option"},{"const":"value3","title":"Third Option"}]`
		return ask(ctx, "Choices", form(`{"untitledSingle":{"type":"string",`+three+`},"titledSingle":{"type":"string","oneOf":`+titled+`},`+
			`"legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],"enumNames":["Option One","Option Two","Option Three"]},`+
			`"untitledMulti":{"type":"array","minItems":1,"maxItems":3,"items":{"type":"string",`+three+`}},`+
			`"titledMulti":{"type":"array","minItems":1,"maxItems":3,"items":{"anyOf":`+titled+`}}}`))
	})
	tool(s, "test_missing_capability", func(ctx context.Context, _ none) (result, error) {
		if c := toolkit.RequestFrom(ctx).SDK.ClientCapabilities(); c != nil && c.Sampling != nil {
			return &mcp.CallToolResult{Content: []mcp.Content{toolkit.Words("sampling is there")}}, nil
		}
		return nil, &jsonrpc.Error{
			Code: mcp.CodeMissingRequiredClientCapabilities, Message: "sampling is needed", Data: json.RawMessage(`{"requiredCapabilities":{"sampling":{}}}`),
		}
	})
}

func changes(s *toolkit.Server) {
	tool(s, "test_trigger_tool_change", func(context.Context, none) (toolkit.Text, error) {
		tool(s, "test_passing_tool", func(context.Context, none) (toolkit.Text, error) { return "", nil })
		return "changed", nil
	})
	tool(s, "test_trigger_prompt_change", func(context.Context, none) (toolkit.Text, error) {
		toolkit.AddPrompt(s, toolkit.Prompt{Name: "test_passing_prompt", Description: "Comes and goes."},
			func(context.Context, none) (toolkit.Messages, error) {
				return toolkit.Messages{toolkit.User("hi")}, nil
			})
		return "changed", nil
	})
}

func resources(s *toolkit.Server) {
	toolkit.AddResource(s, toolkit.Resource{URI: "test://static-text", Name: "static-text", MIMEType: "text/plain"}, func(context.Context) (toolkit.Contents, error) {
		return toolkit.Contents{Text: "This is the content of the static text resource."}, nil
	})
	toolkit.AddResource(s, toolkit.Resource{URI: "test://static-binary", Name: "static-binary", MIMEType: "image/png"}, func(context.Context) (toolkit.Contents, error) {
		return toolkit.Contents{Data: pixel}, nil
	})
	toolkit.AddResource(s, toolkit.Resource{URI: "test://watched-resource", Name: "watched", Watched: true}, func(context.Context) (toolkit.Contents, error) {
		return toolkit.Contents{Text: "watched"}, nil
	})
	toolkit.AddTemplate(s, toolkit.Resource{URI: "test://template/{id}/data", Name: "template", MIMEType: "application/json"},
		func(_ context.Context, v struct {
			ID string `json:"id"`
		}) (toolkit.Contents, error) {
			text, err := json.Marshal(map[string]any{"id": v.ID, "templateTest": true, "data": "Data for ID: " + v.ID})
			return toolkit.Contents{Data: text}, err
		})
}

func prompts(t *testing.T, s *toolkit.Server) {
	toolkit.AddPrompt(s, toolkit.Prompt{Name: "test_simple_prompt", Description: "Without arguments."}, func(context.Context, none) (toolkit.Messages, error) {
		return toolkit.Messages{toolkit.User("This is a simple prompt for testing.")}, nil
	})
	type two struct {
		Arg1 string `json:"arg1" desc:"First"`
		Arg2 string `json:"arg2" desc:"Second"`
	}
	toolkit.AddPrompt(s, toolkit.Prompt{
		Name: "test_prompt_with_arguments", Description: "With two arguments.",
		Complete: map[string]toolkit.Completer{"arg1": toolkit.Choices("paris", "park", "party")},
	}, func(_ context.Context, in two) (toolkit.Messages, error) {
		return toolkit.Messages{toolkit.User(fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", in.Arg1, in.Arg2))}, nil
	})
	type embedded struct {
		URI string `json:"resourceUri" desc:"What to embed"`
	}
	toolkit.AddPrompt(s, toolkit.Prompt{Name: "test_prompt_with_embedded_resource", Description: "With a resource in it."}, func(_ context.Context, in embedded) (toolkit.Messages, error) {
		block, err := toolkit.Embed(in.URI, toolkit.Contents{Text: "Embedded resource content for testing."})
		return toolkit.Messages{toolkit.User(block), toolkit.User("Please process the embedded resource above.")}, err
	})
	toolkit.AddPrompt(s, toolkit.Prompt{Name: "test_prompt_with_image", Description: "With a picture in it."}, func(context.Context, none) (toolkit.Messages, error) {
		return toolkit.Messages{toolkit.User(toolkit.Image(pixel, "image/png")), toolkit.User("Please analyze the image above.")}, nil
	})
	// A prompt that asks back is beyond AddPrompt.
	server, err := s.SDK()
	if err != nil {
		t.Fatal(err)
	}
	server.AddPrompt(&mcp.Prompt{Name: "test_input_required_result_prompt", Description: "Asks back."}, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		if content := accepted(req.Params.InputResponses, "user_context"); content != nil {
			return &mcp.GetPromptResult{Messages: toolkit.Messages{toolkit.User(fmt.Sprintf("Context: %v", content["context"]))}}, nil
		}
		return &mcp.GetPromptResult{InputRequests: mcp.InputRequestMap{"user_context": elicit("context")}}, nil
	})
}

// elicit asks for one text.
func elicit(field string) *mcp.ElicitParams {
	return &mcp.ElicitParams{Message: "Please give " + field, RequestedSchema: form(`{"`+field+`":{"type":"string"}}`, field)}
}

// accepted is what a person filled in; nil if they did not.
func accepted(all mcp.InputResponseMap, id string) map[string]any {
	if r, ok := all[id].(*mcp.ElicitResult); ok && r != nil && r.Action == "accept" {
		return r.Content
	}
	return nil
}

func sampled(all mcp.InputResponseMap, id string) (string, bool) {
	r, ok := all[id].(*mcp.CreateMessageWithToolsResult)
	if !ok || r == nil {
		return "", false
	}
	for _, c := range r.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			return text.Text, true
		}
	}
	return "", true
}

func said(format string, args ...any) result {
	return &mcp.CallToolResult{Content: []mcp.Content{toolkit.Words(fmt.Sprintf(format, args...))}}
}

func sample(text string) *mcp.CreateMessageParams {
	return &mcp.CreateMessageParams{Messages: []*mcp.SamplingMessage{{Role: "user", Content: toolkit.Words(text)}}, MaxTokens: 100}
}

// rounds are tools that answer with a question and are called again with the
// answer, in the modern era.
func rounds(s *toolkit.Server) {
	again := func(name string, f func(p *mcp.CallToolParamsRaw, c *mcp.ClientCapabilities) (result, error)) {
		tool(s, "test_input_required_result_"+name, func(ctx context.Context, _ none) (result, error) {
			req := toolkit.RequestFrom(ctx).SDK
			return f(req.Params, req.ClientCapabilities())
		})
	}
	wants := func(state string, requests mcp.InputRequestMap) (result, error) {
		return &mcp.CallToolResult{InputRequests: requests, RequestState: state}, nil
	}
	again("elicitation", func(p *mcp.CallToolParamsRaw, _ *mcp.ClientCapabilities) (result, error) {
		if name, ok := accepted(p.InputResponses, "user_name")["name"].(string); ok {
			return said("Hello, %s!", name), nil
		}
		return wants("", mcp.InputRequestMap{"user_name": elicit("name")})
	})
	again("sampling", func(p *mcp.CallToolParamsRaw, _ *mcp.ClientCapabilities) (result, error) {
		if text, ok := sampled(p.InputResponses, "capital_question"); ok {
			return said("The model says: %s", text), nil
		}
		return wants("", mcp.InputRequestMap{"capital_question": sample("What is the capital of France?")})
	})
	again("list_roots", func(p *mcp.CallToolParamsRaw, _ *mcp.ClientCapabilities) (result, error) {
		if r, ok := p.InputResponses["client_roots"].(*mcp.ListRootsResult); ok && r != nil {
			return said("%d roots", len(r.Roots)), nil
		}
		return wants("", mcp.InputRequestMap{"client_roots": &mcp.ListRootsParams{}})
	})
	for _, name := range []string{"request_state", "tampered_state"} {
		again(name, func(p *mcp.CallToolParamsRaw, _ *mcp.ClientCapabilities) (result, error) {
			switch {
			case p.RequestState == "":
				return wants("signed", mcp.InputRequestMap{"confirm": &mcp.ElicitParams{Message: "Go on?", RequestedSchema: form(`{"ok":{"type":"boolean"}}`, "ok")}})
			case p.RequestState != "signed":
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "requestState was changed on the way"}
			}
			return said("state-ok"), nil
		})
	}
	again("multiple_inputs", func(p *mcp.CallToolParamsRaw, _ *mcp.ClientCapabilities) (result, error) {
		name := accepted(p.InputResponses, "user_name")
		greeting, greeted := sampled(p.InputResponses, "greeting")
		if _, rooted := p.InputResponses["client_roots"].(*mcp.ListRootsResult); name != nil && greeted && rooted {
			return said("%s %v", greeting, name["name"]), nil
		}
		return wants("all", mcp.InputRequestMap{"user_name": elicit("name"), "greeting": sample("Greet somebody"), "client_roots": &mcp.ListRootsParams{}})
	})
	again("multi_round", func(p *mcp.CallToolParamsRaw, _ *mcp.ClientCapabilities) (result, error) {
		name, second := strings.CutPrefix(p.RequestState, "second:")
		switch {
		case p.RequestState == "":
			return wants("first", mcp.InputRequestMap{"step1": elicit("name")})
		case second:
			return said("%s likes %v", name, accepted(p.InputResponses, "step2")["color"]), nil
		}
		return wants(fmt.Sprintf("second:%v", accepted(p.InputResponses, "step1")["name"]), mcp.InputRequestMap{"step2": elicit("color")})
	})
	again("capabilities", func(p *mcp.CallToolParamsRaw, c *mcp.ClientCapabilities) (result, error) {
		requests := mcp.InputRequestMap{}
		if c != nil && c.Elicitation != nil {
			requests["user_name"] = elicit("name")
		}
		if c != nil && c.Sampling != nil {
			requests["greeting"] = sample("Greet somebody")
		}
		if len(p.InputResponses) > 0 || len(requests) == 0 {
			return said("nothing left to ask"), nil
		}
		return wants("", requests)
	})
}
