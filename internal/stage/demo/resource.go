package demo

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/dragoman-mcp/dragoman/toolkit"
)

// addResources offers the bundled files by name, and the records by template.
func (d *Demo) addResources(s *toolkit.Server) {
	for _, name := range bundledFiles() {
		toolkit.AddResource(s, toolkit.Resource{
			URI:         fileScheme + name,
			Name:        name,
			Description: "Bundled sample data for analyze_csv (示例数据).",
			MIMEType:    "text/csv",
		}, func(context.Context) (toolkit.Contents, error) {
			data, err := bundled.ReadFile(path.Join(bundleDir, name))
			return toolkit.Contents{Data: data}, err
		})
	}
	toolkit.AddTemplate(s, toolkit.Resource{
		URI:         recordScheme + "{table}/{id}",
		Name:        "record",
		Title:       "Record (记录)",
		Description: "A record stored by create_record, as it was sent.",
		MIMEType:    "application/json",
	}, func(_ context.Context, which struct {
		Table string `json:"table"`
		ID    string `json:"id"`
	}) (toolkit.Contents, error) {
		data, ok := d.records.read(recordScheme + which.Table + "/" + which.ID)
		if !ok {
			return toolkit.Contents{}, toolkit.NotFound("There is no record %s.", which.ID)
		}
		return toolkit.Contents{Data: data}, nil
	})
}

// addPrompt offers one prompt that makes a model use two of the tools.
func addPrompt(s *toolkit.Server) {
	toolkit.AddPrompt(s, toolkit.Prompt{
		Name:        "plan_day",
		Title:       "Plan a day (一日游)",
		Description: "Plans a day out in a city by its weather and restaurants.",
		Complete:    map[string]toolkit.Completer{"city": completeCity},
	}, planDay)
}

type dayOut struct {
	City string `json:"city" desc:"City in English or Chinese (城市), e.g. Hangzhou or 杭州" min:"1" max:"100"`
}

func planDay(_ context.Context, args dayOut) (toolkit.Messages, error) {
	city := strings.TrimSpace(args.City)
	text := fmt.Sprintf("Plan a day out in %s for me. Look up the weather with get_weather and places to eat with "+
		"find_restaurant first; propose what to do in the morning, at noon and in the evening, and what to wear.", city)
	if isChinese(city) {
		text = fmt.Sprintf("请帮我安排在%s的一天。先用 get_weather 查天气，再用 find_restaurant 找餐厅；"+
			"然后分上午、中午、晚上给出建议，并提醒我穿什么。", city)
	}
	return toolkit.Messages{toolkit.User(text)}, nil
}

// completeCity proposes cities by the beginning of their name in either
// language.
func completeCity(_ context.Context, typed string, _ map[string]string) (values []string, _ error) {
	start := fold(typed)
	for _, c := range cities {
		for _, n := range []string{c.en, c.zh} {
			if strings.HasPrefix(fold(n), start) {
				values = append(values, n)
			}
		}
	}
	return values, nil
}
