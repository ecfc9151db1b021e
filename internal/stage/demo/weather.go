package demo

import (
	"context"
	"strings"

	"github.com/dragoman-mcp/dragoman/toolkit"
)

// lookup are the hints of a tool that only reads bundled data.
var lookup = toolkit.Hints{ReadOnly: toolkit.Yes, Destructive: toolkit.No, Idempotent: toolkit.Yes, OpenWorld: toolkit.No}

var weatherTool = toolkit.Tool{
	Name:  "get_weather",
	Title: "Weather (天气)",
	Description: `Gets the current weather (当前天气) in one city: temperature in degrees Celsius, sky condition and
		relative humidity in per cent (气温、天气状况、湿度). Use it for questions such as "What is the weather
		in Paris today?" or "上海今天天气怎么样?". One call answers for one city; it gives no forecast for
		other days.`,
	Hints: lookup,
	Examples: []toolkit.Example{
		{Ask: "What is the weather in Paris today?", Arguments: `{"city":"Paris"}`},
		{Ask: "上海今天天气怎么样?", Arguments: `{"city":"上海"}`},
	},
}

type weather struct {
	Temperature float64 `json:"temperature" desc:"Air temperature (气温)"`
	Unit        string  `json:"unit" desc:"Unit of temperature" enum:"Celsius"`
	Condition   string  `json:"condition" desc:"Sky condition (天气状况), e.g. cloudy or 多云"`
	Humidity    int     `json:"humidity" desc:"Relative humidity in per cent (湿度)" min:"0" max:"100"`
}

type place struct {
	City string `json:"city" desc:"City name in English or Chinese (城市名称), e.g. Beijing or 北京. The condition is answered in the same language." min:"1" max:"100" example:"Beijing"`
}

func getWeather(_ context.Context, args place) (weather, error) {
	chinese := isChinese(args.City)
	c, ok := findCity(args.City)
	if !ok {
		known := make([]string, len(cities))
		for i, c := range cities {
			known[i] = c.in(chinese)
		}
		return weather{}, toolkit.NotFound("No weather for the city %q. Give the plain name of one city, in English or Chinese, "+
			"without other words. Known cities: %s.", args.City, strings.Join(known, ", "))
	}
	return weather{float64(c.temperature), "Celsius", c.condition.in(chinese), c.humidity}, nil
}
