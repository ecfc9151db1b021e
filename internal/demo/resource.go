package demo

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// addResources offers the bundled files by name, and the records by template.
func (d *Demo) addResources() {
	for _, name := range bundledFiles() {
		d.server.AddResource(&sdk.Resource{
			URI:         fileScheme + name,
			Name:        name,
			Description: "Bundled sample data for analyze_csv (示例数据).",
			MIMEType:    "text/csv",
		}, readBundled)
	}
	d.server.AddResourceTemplate(&sdk.ResourceTemplate{
		URITemplate: recordScheme + "{table}/{id}",
		Name:        "record",
		Title:       "Record (记录)",
		Description: "A record stored by create_record, as it was sent.",
		MIMEType:    "application/json",
	}, d.readRecord)
}

func readBundled(_ context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	uri := req.Params.URI
	text, err := bundled.ReadFile(path.Join(bundleDir, path.Base(strings.TrimPrefix(uri, fileScheme))))
	if err != nil {
		return nil, sdk.ResourceNotFoundError(uri)
	}
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{
		{URI: uri, MIMEType: "text/csv", Text: string(text)},
	}}, nil
}

func (d *Demo) readRecord(_ context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	uri := req.Params.URI
	data, ok := d.records.read(uri)
	if !ok {
		return nil, sdk.ResourceNotFoundError(uri)
	}
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{
		{URI: uri, MIMEType: "application/json", Text: string(data)},
	}}, nil
}

// addPrompt offers one prompt that makes a model use two of the tools.
func (d *Demo) addPrompt() {
	d.server.AddPrompt(&sdk.Prompt{
		Name:        "plan_day",
		Title:       "Plan a day (一日游)",
		Description: "Plans a day out in a city by its weather and restaurants.",
		Arguments: []*sdk.PromptArgument{{
			Name:        "city",
			Description: "City in English or Chinese (城市), e.g. Hangzhou or 杭州",
			Required:    true,
		}},
	}, planDay)
}

func planDay(_ context.Context, req *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
	city := strings.TrimSpace(req.Params.Arguments["city"])
	if city == "" {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "prompt plan_day needs the argument city"}
	}
	text := fmt.Sprintf("Plan a day out in %s for me. Look up the weather with get_weather and places to eat with "+
		"find_restaurant first; propose what to do in the morning, at noon and in the evening, and what to wear.", city)
	if isChinese(city) {
		text = fmt.Sprintf("请帮我安排在%s的一天。先用 get_weather 查天气，再用 find_restaurant 找餐厅；"+
			"然后分上午、中午、晚上给出建议，并提醒我穿什么。", city)
	}
	return &sdk.GetPromptResult{
		Description: "A day out in " + city,
		Messages:    []*sdk.PromptMessage{{Role: "user", Content: &sdk.TextContent{Text: text}}},
	}, nil
}

// maxCompletions is what MCP allows in one answer to completion/complete.
const maxCompletions = 100

// complete proposes cities for plan_day by the beginning of their name in
// either language. Nothing else can be completed.
func complete(_ context.Context, req *sdk.CompleteRequest) (*sdk.CompleteResult, error) {
	values := []string{}
	if ref := req.Params.Ref; ref != nil && ref.Name == "plan_day" && req.Params.Argument.Name == "city" {
		start := fold(req.Params.Argument.Value)
		for _, c := range cities {
			for _, n := range []string{c.en, c.zh} {
				if strings.HasPrefix(fold(n), start) {
					values = append(values, n)
				}
			}
		}
	}
	return &sdk.CompleteResult{Completion: sdk.CompletionResultDetails{
		Values:  values[:min(len(values), maxCompletions)],
		Total:   len(values),
		HasMore: len(values) > maxCompletions,
	}}, nil
}
