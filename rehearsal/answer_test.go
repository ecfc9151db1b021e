package rehearsal

import (
	"fmt"
	"strings"
	"testing"
)

func TestAnswer(t *testing.T) {
	const weather = `{"temperature":22,"unit":"Celsius","condition":"多云","humidity":65}`
	for _, tt := range []struct{ name, text, english, chinese string }{
		{"envelope", `{"status":"success","data":` + weather + `,"meta":{"tool":"x"}}`,
			"According to t: temperature: 22 °C, condition: 多云, humidity: 65 %.", "根据 t 的结果：气温 22 °C，天气 多云，湿度 65 %。"},
		{"bare JSON", weather,
			"According to t: temperature: 22 °C, condition: 多云, humidity: 65 %.", "根据 t 的结果：气温 22 °C，天气 多云，湿度 65 %。"},
		{"MCP result", `{"content":[{"type":"text","text":"x"}],"structuredContent":{"sum":5.50}}`,
			"According to t: sum: 5.50.", "根据 t 的结果：和 5.50。"},
		{"MCP failure", `{"content":[{"type":"text","text":"no such city"}],"isError":true}`,
			"t failed: no such city.", "t 调用失败：no such city。"},
		{"text", "It rains.", "According to t: It rains.", "根据 t 的结果：It rains."},
		{"number", `{"status":"success","data":9007199254740993,"meta":{}}`,
			"According to t: 9007199254740993.", "根据 t 的结果：9007199254740993。"},
		{"nothing", `{"status":"success","data":null,"meta":{"note":"no rows"}}`, "According to t: no rows.", "根据 t 的结果：no rows。"},
		{"empty", "", "According to t: no data.", "根据 t 的结果：没有数据。"},
		{"cut", `{"status":"success","data":"abc","meta":{"truncated":{"total":9}}}`,
			"According to t: abc. The result was cut.", "根据 t 的结果：abc。结果已截断。"},
		{"error", `{"status":"error","data":{"error":"invalid_arguments","message":"Bad arguments.","missing_field":"city","invalid":[{"path":"/n","expected":"integer"}]},"meta":{}}`,
			"t failed: Bad arguments (invalid_arguments); missing: city; path: /n, expected: integer.", "t 调用失败：Bad arguments (invalid_arguments)；缺少：city；路径 /n，expected integer。"},
		{"timeout", `{"status":"error","data":{"error":"timeout","retry_after":5}}`,
			"t failed: timeout; retry after 5 s.", "t 调用失败：timeout；5 秒后可重试。"},
		{"other units", `{"temp_f":50,"wind_kph":12,"cloud_cover":40,"count":3}`,
			"According to t: temp f: 50 °F, wind kph: 12 km/h, cloud cover: 40 %, count: 3.", "根据 t 的结果：temp_f 50 °F，wind_kph 12 km/h，cloud_cover 40 %，数量 3。"},
		{"unit of the only number", `{"length":3,"unit":"furlong"}`, "According to t: length: 3 furlong.", "根据 t 的结果：length 3 furlong。"},
		{"unit of nobody knows what", `{"a":3,"b":4,"unit":"m"}`, "According to t: a: 3, b: 4, unit: m.", "根据 t 的结果：a 3，b 4，unit m。"},
		{"list", `[{"id":1,"ok":true},{"id":2,"ok":false,"tags":["x","y"]}]`,
			"According to t:\n1. id: 1, ok: yes\n2. id: 2, ok: no, tags: x, y", "根据 t 的结果：\n1. 编号 1，ok 是\n2. 编号 2，ok 否，tags x、y"},
		{"list below", `{"rows":[{"a":1}],"total":1}`, "According to t:\ntotal: 1\nrows:\n1. a: 1", "根据 t 的结果：\n总数 1\n行数\n1. a 1"},
		{"nested", `{"place":{"city":"Bonn","geo":{"lat":1}},"none":null,"empty":{},"list":[]}`,
			"According to t: place: (city: Bonn, geo: (lat: 1)), none: none, empty: (nothing), list: none.", "根据 t 的结果：place (城市 Bonn，geo (lat 1))，none 无，empty (空)，list 无。"},
		{"deep tree", `{"tree":[{"name":"A","sub":[{"name":"B"},{"name":"C"}]}]}`,
			"According to t:\ntree:\n1. name: A, sub: (B, C)", "根据 t 的结果：\n组织\n1. 名称 A，sub (B, C)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			results := []outcome{{tool: "t", arguments: `{"city":"X"}`, text: tt.text}}
			if got := answer(results, false); got != tt.english {
				t.Errorf("got  %s\nwant %s", got, tt.english)
			}
			if got := answer(results, true); got != tt.chinese {
				t.Errorf("got  %s\nwant %s", got, tt.chinese)
			}
		})
	}
}

func TestAnswerSeveral(t *testing.T) {
	got := answer([]outcome{
		{tool: "w", arguments: `{"city":"Rome"}`, text: `{"t":1}`},
		{tool: "w", arguments: `{"city":"Oslo"}`, text: "cold", attached: true},
		{arguments: `not JSON`, text: "x"},
	}, false)
	want := "According to w (city: Rome): t: 1.\nAccording to w (city: Oslo): cold (with an attachment that I cannot see).\nAccording to the tool: x."
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestAnswerBounds gives results of every shape that could run away.
func TestAnswerBounds(t *testing.T) {
	var rows, wide []string
	for i := range 500 {
		rows = append(rows, fmt.Sprintf(`{"n":%d,"s":%q}`, i, strings.Repeat("字", 1000)))
		wide = append(wide, fmt.Sprintf(`"k%d":[%d]`, i, i))
	}
	for _, text := range []string{
		strings.Repeat("长", 100_000),
		"[" + strings.Join(rows, ",") + "]",
		"{" + strings.Join(wide, ",") + "}",
		strings.Repeat(`{"a":[`, 3000) + strings.Repeat(`]}`, 3000),
	} {
		got := answer([]outcome{{tool: "t", text: text}}, true)
		if n := len([]rune(got)); n > longestAnswer || n == 0 {
			t.Errorf("%d characters for %.20s", n, text)
		}
	}
}
