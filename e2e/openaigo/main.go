// Command openaigo runs conversations with the official openai-go client. Its
// contract is that of the scripts in ../clients: a scenario and a prompt as
// arguments, one line of JSON as the answer. It is a module of its own, so that
// nobody who builds the gateway has to compile that client.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"strconv"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// facts are what a user of the client would see.
type facts struct {
	ID       string         `json:"id,omitempty"`
	Content  string         `json:"content"`
	Finish   string         `json:"finish"`
	Calls    []call         `json:"calls,omitempty"`
	Prompt   int64          `json:"prompt_tokens"`
	Chunks   int            `json:"chunks,omitempty"`
	Accepted bool           `json:"accepted"` // the accumulator took every chunk
	Local    []string       `json:"local,omitempty"`
	Kinds    []string       `json:"kinds,omitempty"` // of items of the Responses API
	Error    map[string]any `json:"error,omitempty"`
}

type call struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 3 {
		log.Fatal("usage: openaigo SCENARIO PROMPT")
	}
	client := openai.NewClient(
		option.WithBaseURL(os.Getenv("DRAGOMAN_BASE_URL")),
		option.WithAPIKey("none"),
		option.WithMaxRetries(0),
	)
	run := map[string]func(context.Context, openai.Client, string) (facts, error){
		"create": create, "stream": stream, "tools": tools,
		"responses": turn(whole, "", "", false), "responses-stream": turn(streamed, "", "", false),
		"responses-approved": turn(whole, "tools", "always", false), "responses-approved-stream": turn(streamed, "tools", "always", false),
		"responses-image": turn(whole, "", "", true), "responses-image-stream": turn(streamed, "", "", true),
		"responses-nowhere": turn(whole, "nowhere", "never", false), "responses-nowhere-stream": turn(streamed, "nowhere", "never", false),
	}[os.Args[1]]
	if run == nil {
		log.Fatalf("no scenario %s", os.Args[1])
	}
	got, err := run(context.Background(), client, os.Args[2])
	var refused *openai.Error
	switch {
	case errors.As(err, &refused):
		got.Error = map[string]any{"status": refused.StatusCode, "code": refused.Code, "type": refused.Type, "message": refused.Message}
	case err != nil:
		log.Fatal(err)
	}
	line, err := json.Marshal(got)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(line))
}

func request(prompt string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model:    "rehearsal",
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(prompt)},
	}
}

func factsOf(c *openai.ChatCompletion) facts {
	f := facts{ID: c.ID, Prompt: c.Usage.PromptTokens}
	if len(c.Choices) > 0 {
		f.Content, f.Finish = c.Choices[0].Message.Content, c.Choices[0].FinishReason
		for _, t := range c.Choices[0].Message.ToolCalls {
			f.Calls = append(f.Calls, call{t.ID, t.Function.Name, t.Function.Arguments})
		}
	}
	return f
}

func create(ctx context.Context, client openai.Client, prompt string) (facts, error) {
	c, err := client.Chat.Completions.New(ctx, request(prompt))
	if err != nil {
		return facts{}, err
	}
	return factsOf(c), nil
}

// stream reads a stream with the client's own accumulator, which refuses a stream
// that is not one completion.
func stream(ctx context.Context, client openai.Client, prompt string) (facts, error) {
	params := request(prompt)
	params.StreamOptions = openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}
	s := client.Chat.Completions.NewStreaming(ctx, params)
	defer s.Close()
	acc := openai.ChatCompletionAccumulator{}
	chunks, accepted := 0, true
	for s.Next() {
		chunks++
		accepted = acc.AddChunk(s.Current()) && accepted
	}
	if err := s.Err(); err != nil {
		return facts{}, err
	}
	f := factsOf(&acc.ChatCompletion)
	f.Chunks, f.Accepted = chunks, accepted
	return f, nil
}

// tools answers the calls of the client's own tool until there are none.
func tools(ctx context.Context, client openai.Client, prompt string) (facts, error) {
	params := request(prompt)
	number := map[string]any{"type": "number"}
	params.Tools = []openai.ChatCompletionToolUnionParam{
		openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{
			Name:        "multiply",
			Description: openai.String("Multiplies two numbers"),
			Parameters: openai.FunctionParameters{
				"type": "object", "properties": map[string]any{"a": number, "b": number}, "required": []string{"a", "b"},
			},
		}),
	}
	var local []string
	for range 8 {
		c, err := client.Chat.Completions.New(ctx, params)
		if err != nil {
			return facts{Local: local}, err
		}
		f := factsOf(c)
		f.Local = local
		if len(f.Calls) == 0 {
			return f, nil
		}
		params.Messages = append(params.Messages, c.Choices[0].Message.ToParam())
		for _, call := range f.Calls {
			var args struct{ A, B float64 }
			if err := json.Unmarshal([]byte(call.Arguments), &args); err != nil {
				return f, fmt.Errorf("arguments of %s: %w", call.Name, err)
			}
			product := strconv.FormatFloat(args.A*args.B, 'g', -1, 64)
			local = append(local, call.Name+" "+product)
			params.Messages = append(params.Messages, openai.ToolMessage(product, call.ID))
		}
	}
	return facts{Local: local}, errors.New("eight rounds were not enough")
}
