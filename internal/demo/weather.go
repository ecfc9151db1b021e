package demo

import (
	"context"
	"strings"
)

var weatherTool = tool{
	name:  "get_weather",
	title: "Weather (天气)",
	description: `Current weather (当前天气) in one city: temperature in degrees Celsius, sky condition and
		relative humidity in per cent (气温、天气状况、湿度). Use it for questions such as "What is the weather
		in Paris today?" or "上海今天天气怎么样?". One call answers for one city; it gives no forecast for
		other days.`,
	input: `{
		"type": "object",
		"properties": {
			"city": {
				"type": "string",
				"minLength": 1,
				"maxLength": 100,
				"description": "City name in English or Chinese (城市名称), e.g. Beijing or 北京. The condition is answered in the same language.",
				"examples": ["Beijing", "上海"]
			}
		},
		"required": ["city"],
		"additionalProperties": false
	}`,
	output: `{
		"type": "object",
		"properties": {
			"temperature": {"type": "number", "description": "Air temperature (气温)"},
			"unit": {"type": "string", "enum": ["Celsius"], "description": "Unit of temperature"},
			"condition": {"type": "string", "description": "Sky condition (天气状况), e.g. cloudy or 多云"},
			"humidity": {"type": "integer", "minimum": 0, "maximum": 100, "description": "Relative humidity in per cent (湿度)"}
		},
		"required": ["temperature", "unit", "condition", "humidity"],
		"additionalProperties": false
	}`,
	hints: lookup,
}

type weather struct {
	Temperature int    `json:"temperature"`
	Unit        string `json:"unit"`
	Condition   string `json:"condition"`
	Humidity    int    `json:"humidity"`
}

func getWeather(_ context.Context, args struct {
	City string `json:"city"`
}, _ progress) (reply, error) {
	chinese := isChinese(args.City)
	c, ok := findCity(args.City)
	if !ok {
		known := make([]string, len(cities))
		for i, c := range cities {
			known[i] = c.in(chinese)
		}
		return reply{}, refuse("No weather for the city %q. Give the plain name of one city, in English or Chinese, "+
			"without other words. Known cities: %s.", args.City, strings.Join(known, ", "))
	}
	return reply{data: weather{c.temperature, "Celsius", c.condition.in(chinese), c.humidity}}, nil
}
