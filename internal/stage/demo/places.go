package demo

import (
	"strings"
	"unicode"
)

// A name is one thing in two languages.
type name struct{ en, zh string }

// in picks the language: Chinese if the question was put in it.
func (n name) in(chinese bool) string {
	if chinese {
		return n.zh
	}
	return n.en
}

// A city is a place with the weather it has in this demo, every day.
type city struct {
	name
	temperature int // degrees Celsius
	humidity    int // per cent
	condition   name
}

var (
	sunny    = name{"sunny", "晴"}
	cloudy   = name{"cloudy", "多云"}
	overcast = name{"overcast", "阴"}
	showers  = name{"showers", "阵雨"}
	rain     = name{"rain", "小雨"}
	storm    = name{"thunderstorm", "雷阵雨"}
	fog      = name{"fog", "雾"}
	snow     = name{"light snow", "小雪"}
	haze     = name{"haze", "霾"}
	windy    = name{"windy", "大风"}
)

var cities = []city{
	{name{"Beijing", "北京"}, 22, 65, cloudy},
	{name{"Shanghai", "上海"}, 25, 78, rain},
	{name{"Guangzhou", "广州"}, 29, 82, storm},
	{name{"Shenzhen", "深圳"}, 28, 80, showers},
	{name{"Hangzhou", "杭州"}, 24, 74, overcast},
	{name{"Nanjing", "南京"}, 23, 68, cloudy},
	{name{"Chengdu", "成都"}, 21, 76, overcast},
	{name{"Chongqing", "重庆"}, 26, 79, fog},
	{name{"Wuhan", "武汉"}, 24, 70, cloudy},
	{name{"Xi'an", "西安"}, 20, 55, haze},
	{name{"Tianjin", "天津"}, 21, 60, windy},
	{name{"Harbin", "哈尔滨"}, -4, 58, snow},
	{name{"Kunming", "昆明"}, 19, 62, sunny},
	{name{"Hong Kong", "香港"}, 28, 81, showers},
	{name{"Taipei", "台北"}, 27, 77, cloudy},
	{name{"Tokyo", "东京"}, 18, 61, sunny},
	{name{"Seoul", "首尔"}, 16, 54, sunny},
	{name{"Singapore", "新加坡"}, 31, 84, storm},
	{name{"Bangkok", "曼谷"}, 33, 73, sunny},
	{name{"Mumbai", "孟买"}, 30, 79, haze},
	{name{"Sydney", "悉尼"}, 23, 57, sunny},
	{name{"Dubai", "迪拜"}, 36, 41, sunny},
	{name{"Cairo", "开罗"}, 32, 28, sunny},
	{name{"Moscow", "莫斯科"}, 2, 72, snow},
	{name{"Berlin", "柏林"}, 11, 71, overcast},
	{name{"Paris", "巴黎"}, 14, 69, rain},
	{name{"London", "伦敦"}, 12, 80, rain},
	{name{"Rome", "罗马"}, 20, 60, sunny},
	{name{"New York", "纽约"}, 15, 56, windy},
	{name{"San Francisco", "旧金山"}, 17, 75, fog},
	{name{"São Paulo", "圣保罗"}, 24, 67, showers},
}

// findCity knows a city by either name. A country or state after a comma, a
// closing 市 or "City", case and punctuation do not matter.
func findCity(text string) (city, bool) {
	text, _, _ = strings.Cut(strings.ReplaceAll(text, "，", ","), ",")
	key := fold(text)
	for _, c := range cities {
		switch key {
		case fold(c.en), fold(c.en) + "city", fold(c.zh), fold(c.zh) + "市":
			return c, true
		}
	}
	return city{}, false
}

// fold leaves the lower-case letters and digits of a text, without the accents
// that our names have.
func fold(text string) string {
	return strings.Map(func(r rune) rune {
		r = unicode.ToLower(r)
		switch {
		case r == 'ã':
			return 'a'
		case unicode.IsLetter(r), unicode.IsDigit(r):
			return r
		default:
			return -1
		}
	}, text)
}

// isChinese tells whether a text has at least one Han character.
func isChinese(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return unicode.Is(unicode.Han, r) })
}
