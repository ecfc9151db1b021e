package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
)

// An ask sends one request of the Responses API.
type ask func(context.Context, openai.Client, responses.ResponseNewParams) (*responses.Response, error)

func whole(ctx context.Context, client openai.Client, params responses.ResponseNewParams) (*responses.Response, error) {
	return client.Responses.New(ctx, params)
}

// streamed returns the response that ends a stream, whose texts are those of the deltas.
func streamed(ctx context.Context, client openai.Client, params responses.ResponseNewParams) (*responses.Response, error) {
	s := client.Responses.NewStreaming(ctx, params)
	defer s.Close()
	var text string
	var last *responses.Response
	for s.Next() {
		switch e := s.Current().AsAny().(type) {
		case responses.ResponseTextDeltaEvent:
			text += e.Delta
		case responses.ResponseCompletedEvent:
			last = &e.Response
		}
	}
	if err := s.Err(); err != nil {
		return nil, err
	}
	if last == nil || last.OutputText() != text {
		return nil, fmt.Errorf("the stream said %q, and its end is not that", text)
	}
	return last, nil
}

const pixel = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="

// turn answers the calls of the client's own tool, and what waits for approval, until
// there is nothing of either. label names a server of ours; empty for none.
func turn(how ask, label, approval string, pictures bool) func(context.Context, openai.Client, string) (facts, error) {
	return func(ctx context.Context, client openai.Client, prompt string) (f facts, err error) {
		content := responses.ResponseInputMessageContentListParam{responses.ResponseInputContentParamOfInputText(prompt)}
		if pictures {
			image := responses.ResponseInputContentParamOfInputImage("auto")
			image.OfInputImage.ImageURL = param.NewOpt(pixel)
			content = append(content, image)
		}
		number := map[string]any{"type": "number"}
		params := responses.ResponseNewParams{
			Model: "rehearsal",
			Input: responses.ResponseNewParamsInputUnion{OfInputItemList: responses.ResponseInputParam{
				responses.ResponseInputItemParamOfMessage(content, "user"),
			}},
			Tools: []responses.ToolUnionParam{{OfFunction: &responses.FunctionToolParam{
				Name: "multiply", Description: param.NewOpt("Multiplies two numbers"), Strict: param.NewOpt(false),
				Parameters: map[string]any{"type": "object", "properties": map[string]any{"a": number, "b": number}, "required": []string{"a", "b"}},
			}}},
		}
		if label != "" {
			params.Tools = append(params.Tools, responses.ToolUnionParam{OfMcp: &responses.ToolMcpParam{
				ServerLabel: label, RequireApproval: responses.ToolMcpRequireApprovalUnionParam{OfMcpToolApprovalSetting: param.NewOpt(approval)},
			}})
		}
		for range 8 {
			r, err := how(ctx, client, params)
			if err != nil {
				return f, err
			}
			f.ID, f.Content, f.Finish, f.Prompt = r.ID, r.OutputText(), string(r.Status), r.Usage.InputTokens
			answers, err := f.answers(r)
			if err != nil || len(answers) == 0 {
				return f, err
			}
			params.PreviousResponseID = param.NewOpt(r.ID)
			params.Input.OfInputItemList = answers
		}
		return f, errors.New("eight rounds were not enough")
	}
}

// answers returns what a response waits for.
func (f *facts) answers(r *responses.Response) (answers responses.ResponseInputParam, err error) {
	for _, item := range r.Output {
		f.Kinds = append(f.Kinds, item.Type)
		switch item.Type {
		case "function_call":
			var args struct{ A, B float64 }
			if err := json.Unmarshal([]byte(item.AsFunctionCall().Arguments), &args); err != nil {
				return nil, fmt.Errorf("arguments of %s: %w", item.Name, err)
			}
			product := strconv.FormatFloat(args.A*args.B, 'g', -1, 64)
			f.Local = append(f.Local, item.Name+" "+product)
			output := responses.ResponseInputItemParamOfFunctionCallOutput(product)
			output.OfFunctionCallOutput.CallID = param.NewOpt(item.AsFunctionCall().CallID)
			answers = append(answers, output)
		case "mcp_approval_request":
			answers = append(answers, responses.ResponseInputItemParamOfMcpApprovalResponse(item.ID, true))
		}
	}
	return slices.Clip(answers), nil
}
