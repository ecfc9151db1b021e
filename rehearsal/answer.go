package rehearsal

import (
	"fmt"
	"slices"
	"strings"
)

// Limits of an answer, in characters, elements and levels.
const (
	longestAnswer = 2000
	longestText   = 800
	mostItems     = 10
	mostLevels    = 4
)

// reading is what a result says.
type reading struct {
	failed    bool
	data      value
	text      string // where there is no data
	note      string
	truncated bool
}

// read understands the envelope {"status","data","meta"}, an MCP result, any
// other JSON, and plain text, also with a fenced JSON block after it.
func read(o outcome) reading {
	text := strings.TrimSpace(o.text)
	v, err := parse([]byte(text))
	if err != nil {
		return reading{text: text}
	}
	status := v.get("status")
	switch {
	case (status.is("success") || status.is("error")) && v.get("data").kind != absent:
		meta := v.get("meta")
		return reading{failed: status.is("error"), data: v.get("data"), note: meta.get("note").text, truncated: meta.get("truncated").given()}
	case v.get("content").kind == isArray && (v.get("structuredContent").kind != absent || v.get("isError").kind == isBool):
		out := reading{failed: v.get("isError").isTrue(), data: v.get("structuredContent")}
		if out.data.kind == absent {
			out.text, _ = contentText(v.get("content"))
		}
		return out
	}
	return reading{data: v}
}

// renderer writes data as people read it.
type renderer struct {
	chinese bool
}

func (w renderer) pick(english, chinese string) string {
	if w.chinese {
		return chinese
	}
	return english
}

// answer tells the user what the results say.
func answer(results []outcome, chinese bool) string {
	w := renderer{chinese}
	var parts []string
	for _, o := range results {
		parts = append(parts, w.result(o, len(results) > 1))
	}
	return clip(strings.Join(parts, "\n"), longestAnswer)
}

// result is one sentence, or a list, about one result. Where there are
// several, the arguments say which is which.
func (w renderer) result(o outcome, several bool) string {
	r := read(o)
	who := o.tool
	if who == "" {
		who = w.pick("the tool", "工具")
	}
	if arguments, err := parse([]byte(o.arguments)); err == nil && several && len(arguments.members) > 0 {
		who += " (" + clip(w.flat(arguments, 1), 100) + ")"
	}
	if r.failed {
		return fmt.Sprintf(w.pick("%s failed: %s", "%s 调用失败：%s"), who, w.end(w.failure(r)))
	}
	said := clip(r.text, longestText)
	switch {
	case r.data.kind == isNull || r.data.kind == absent && said == "":
		said = w.pick("no data", "没有数据")
		if r.note != "" {
			said = r.note
		}
	case r.data.kind != absent:
		said = w.flat(r.data, 0)
	}
	if o.attached {
		said += w.pick(" (with an attachment that I cannot see)", "（附件无法查看）")
	}
	said = w.end(said)
	if r.truncated {
		said += w.pick(" The result was cut.", "结果已截断。")
	}
	between := w.pick(" ", "")
	if strings.Contains(said, "\n") {
		between = "\n"
	}
	return fmt.Sprintf(w.pick("According to %s:", "根据 %s 的结果："), who) + between + said
}

// end puts a full stop after a sentence that has none.
func (w renderer) end(s string) string {
	s = strings.TrimSpace(s)
	if s == "" || strings.Contains(s, "\n") || strings.HasSuffix(s, ".") || strings.HasSuffix(s, "。") || strings.HasSuffix(s, "!") || strings.HasSuffix(s, "…") {
		return s
	}
	return s + w.pick(".", "。")
}

// failure is the message of an error, its code, and what was invalid.
func (w renderer) failure(r reading) string {
	if r.data.kind != isObject {
		if r.data.kind != absent {
			return w.flat(r.data, 0)
		}
		return clip(r.text, longestText)
	}
	message, code := r.data.get("message").text, r.data.get("error").text
	switch {
	case message == "" && code == "":
		return w.flat(r.data, 0)
	case message == "":
		message = code
	case code != "":
		message = strings.TrimRight(clip(message, longestText), ".。") + " (" + code + ")"
	}
	var details []string
	if field := r.data.get("missing_field").text; field != "" {
		details = append(details, w.pick("missing: ", "缺少：")+field)
	}
	for i, e := range r.data.get("invalid").items {
		if i < mostItems {
			details = append(details, w.flat(e, 1))
		}
	}
	if after := r.data.get("retry_after"); after.kind == isNumber {
		details = append(details, fmt.Sprintf(w.pick("retry after %s s", "%s 秒后可重试"), after.raw))
	}
	return strings.Join(append([]string{message}, details...), w.pick("; ", "；"))
}

// flat writes a value on one line, except for lists of objects and the
// objects that hold them, which take a line for each element.
func (w renderer) flat(v value, depth int) string {
	switch v.kind {
	case isNull, absent:
		return w.pick("none", "无")
	case isBool:
		if v.isTrue() {
			return w.pick("yes", "是")
		}
		return w.pick("no", "否")
	case isString:
		return clip(strings.TrimSpace(v.text), longestText)
	case isArray:
		return w.list(v, depth)
	case isObject:
		return w.object(v, depth)
	}
	return string(v.raw)
}

func (w renderer) list(v value, depth int) string {
	if len(v.items) == 0 {
		return w.pick("none", "无")
	}
	if depth >= mostLevels {
		if known := nameList(v); known != "" {
			return known
		}
		return fmt.Sprintf(w.pick("%d items", "%d 项"), len(v.items))
	}
	lines := depth == 0 || depth == 1 && slices.ContainsFunc(v.items, func(i value) bool { return i.kind == isObject })
	var list []string
	for i, item := range v.items {
		if i == mostItems {
			list = append(list, fmt.Sprintf(w.pick("… and %d more", "……另有 %d 项"), len(v.items)-mostItems))
			break
		}
		text := w.flat(item, depth+2)
		if item.kind == isObject && !lines {
			text = "(" + text + ")"
		}
		if lines {
			text = fmt.Sprintf("%d. %s", i+1, text)
		}
		list = append(list, text)
	}
	if lines {
		return "\n" + strings.Join(list, "\n")
	}
	return strings.Join(list, w.pick(", ", "、"))
}

// nameList names the objects of a list that is too deep to be written out. It
// is empty where one has no name.
func nameList(v value) string {
	var list []string
	for _, item := range v.items {
		name := item.get("name").text
		if name == "" {
			return ""
		}
		if len(list) == mostItems {
			list = append(list, "…")
			break
		}
		list = append(list, name)
	}
	return "(" + strings.Join(list, ", ") + ")"
}

func (w renderer) object(v value, depth int) string {
	if len(v.members) == 0 {
		return w.pick("nothing", "空")
	}
	if depth >= mostLevels {
		return fmt.Sprintf(w.pick("%d fields", "%d 个字段"), len(v.members))
	}
	var short, long []string
	for i, m := range v.members {
		if i == 2*mostItems {
			short = append(short, fmt.Sprintf(w.pick("… and %d more", "……另有 %d 项"), len(v.members)-i))
			break
		}
		if m.value.kind == isString && isUnit(v, m) {
			continue
		}
		text := w.flat(m.value, depth+1)
		switch m.value.kind {
		case isObject:
			text = "(" + text + ")"
		case isNumber:
			text += unitOf(v, m)
		}
		label := strings.ReplaceAll(m.name, "_", " ") + ":"
		if w.chinese {
			label = chineseLabel(m.name)
		}
		if strings.HasPrefix(text, "\n") { // a list stands below the rest
			long = append(long, label+text)
		} else {
			short = append(short, label+" "+text)
		}
	}
	line := strings.Join(short, w.pick(", ", "，"))
	return strings.TrimPrefix(strings.Join(append([]string{line}, long...), "\n"), "\n")
}

// units spells the units that tools write out.
var units = map[string]string{
	"celsius": "°C", "c": "°C", "°c": "°C", "fahrenheit": "°F", "f": "°F", "°f": "°F", "kelvin": "K", "percent": "%", "%": "%",
	"kph": "km/h", "kmh": "km/h", "km/h": "km/h", "mph": "mph", "km": "km", "hpa": "hPa", "mm": "mm", "m/s": "m/s",
	"seconds": "s", "minutes": "min", "ms": "ms", "bytes": "bytes", "pct": "%",
}

// percentages are members whose numbers are per cent by custom.
var percentages = map[string]bool{"humidity": true, "cloud_cover": true, "cloudiness": true, "precipitation_probability": true, "湿度": true}

// isUnit is true for a member that only says in what its neighbour counts.
func isUnit(object value, m member) bool {
	if name := strings.ToLower(m.name); name != "unit" && name != "units" {
		return false
	}
	return slices.ContainsFunc(object.members, func(n member) bool { return n.value.kind == isNumber && measured(object, n) })
}

// measured is true for the member that the object's unit belongs to: a
// temperature with a unit of temperature, else the only number.
func measured(object value, m member) bool {
	name := strings.ToLower(m.name)
	if strings.Contains(name, "temp") || strings.Contains(name, "feels") || name == "high" || name == "low" || name == "气温" || name == "温度" {
		return true
	}
	numbers := 0
	for _, n := range object.members {
		if n.value.kind == isNumber {
			numbers++
		}
	}
	return numbers == 1
}

// unitOf is the unit to write after a number, with the space before it.
func unitOf(object value, m member) string {
	name := strings.ToLower(m.name)
	if percentages[name] {
		return " %"
	}
	if i := strings.LastIndexByte(name, '_'); i >= 0 && units[name[i+1:]] != "" {
		return " " + units[name[i+1:]]
	}
	for _, key := range []string{"unit", "units"} {
		if unit := object.get(key); unit.kind == isString && measured(object, m) {
			if sign := units[strings.ToLower(unit.text)]; sign != "" {
				return " " + sign
			}
			return " " + unit.text
		}
	}
	return ""
}

// chineseLabels name the members that demos and everyday tools return.
var chineseLabels = map[string]string{
	"city": "城市", "temperature": "气温", "condition": "天气", "humidity": "湿度", "wind": "风", "date": "日期", "time": "时间",
	"name": "名称", "address": "地址", "rating": "评分", "price": "价格", "cuisine": "菜系", "phone": "电话", "total": "总数", "count": "数量",
	"sum": "和", "result": "结果", "message": "消息", "title": "职位", "department": "部门", "error": "错误", "status": "状态",
	"path": "路径", "size": "大小", "id": "编号", "description": "说明", "restaurants": "餐厅", "employee": "员工", "subordinates": "下属",
	"rows": "行数", "columns": "列", "average": "平均值", "file": "文件", "table": "表", "deleted": "已删除", "remaining": "剩余",
	"reports": "下属人数", "tree": "组织", "truncated": "已截断", "skipped": "已跳过", "empId": "员工编号",
}

func chineseLabel(name string) string {
	if label := chineseLabels[name]; label != "" {
		return label
	}
	return name
}
