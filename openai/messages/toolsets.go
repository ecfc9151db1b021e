package messages

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// A family is a toolset that clients run: one entry of tools without a name, which stands
// for all of its members. Each is a function of the model's, under the names of both, and
// a call of it a tool_use with the member's name and, as toolset_name, the family's.
type family struct {
	name    string
	members []member
}

// A member is one tool of a family.
type member struct {
	name, description string
	// required are the properties, by their names, that a call has to have.
	required   string
	properties []string
	// off says that it is offered only where the entry turns it on.
	off bool
}

// parameters returns the schema of a call's input.
func (m *member) parameters() json.RawMessage {
	schema := `{"type":"object","properties":{` + strings.Join(m.properties, ",") + `}`
	if m.required != "" {
		schema += `,"required":["` + strings.ReplaceAll(m.required, " ", `","`) + `"]`
	}
	return json.RawMessage(schema + "}")
}

// A familyTool is a member by the name of its family.
type familyTool struct{ family, member string }

// function is the name under which the model knows it.
func (t familyTool) function() string { return t.family + "_" + t.member }

// familyOf returns the family that an entry of some type declares; nil for another type.
func familyOf(kind string) *family {
	for _, f := range families {
		if strings.HasPrefix(kind, f.name+"_toolset_") {
			return f
		}
	}
	return nil
}

// readFamily reads the entry of a family: those members that configs leaves on, or turns on.
func (r *Request) readFamily(f *family, o *rawjson.Object, param string) error {
	configs := new(rawjson.Object)
	if raw := o.Get("configs"); !rawjson.IsNull(raw) && configs.Parse(raw) != nil {
		return wrong(param+".configs", "must be an object, by the names of members.")
	}
	known := map[string]bool{}
	for i := range f.members {
		m := &f.members[i]
		known[m.name] = true
		c, err := readToolConfig(configs.Get(m.name), toolConfig{enabled: !m.off}, param+".configs."+m.name)
		if err != nil {
			return err
		}
		if !c.enabled {
			continue
		}
		t := familyTool{f.name, m.name}
		if err := r.addFunction(t.function(), rawjson.Quote(m.description), m.parameters(), false, param); err != nil {
			return err
		}
		if r.families == nil {
			r.families = map[string]familyTool{}
		}
		r.families[t.function()] = t
		if c.deferred {
			r.later(t.function(), f.name)
		}
	}
	for name := range configs.All() {
		if !known[name] {
			return wrong(param+".configs."+name, fmt.Sprintf("the toolset %q has no such member.", f.name))
		}
	}
	return nil
}

// browserState is what a model reads of a block of the type browser_state: the tabs that
// are open, and what came of downloads.
func browserState(b block) (string, error) {
	var state struct {
		Tabs []struct {
			ID     string `json:"tab_id"`
			Title  string
			URL    string
			Active bool
		}
		Changes []struct {
			Type     string
			Tab      string `json:"tab_id"`
			Download string `json:"download_id"`
			URL      string
			Path     string
			Size     *int64 `json:"size_bytes"`
			Error    string
		} `json:"state_changes"`
	}
	tabs, changes := b.Get("tabs"), b.Get("state_changes")
	if json.Unmarshal(tabs, &state.Tabs) != nil || !rawjson.IsNull(changes) && json.Unmarshal(changes, &state.Changes) != nil {
		return "", wrong(".tabs", "must be the tabs that are open, and state_changes what came about.")
	}
	var text strings.Builder
	text.WriteString("Open tabs:")
	for _, tab := range state.Tabs {
		line := fmt.Sprintf("\n- %s: %s %s", tab.ID, tab.Title, tab.URL)
		if tab.Active {
			line += " (active)"
		}
		text.WriteString(strings.TrimRight(line, ": "))
	}
	if len(state.Tabs) == 0 {
		text.WriteString(" none")
	}
	for _, c := range state.Changes {
		fmt.Fprintf(&text, "\n%s:", strings.ReplaceAll(c.Type, "_", " "))
		size := ""
		if c.Size != nil {
			size = strconv.FormatInt(*c.Size, 10) + " bytes"
		}
		for _, part := range []string{c.Tab, c.Download, c.URL, c.Path, size, c.Error} {
			if part != "" {
				text.WriteString(" " + part)
			}
		}
	}
	return text.String(), nil
}

// What several members take.
const (
	inTab     = `"tab_id":{"type":"string","description":"The tab; the active one where it is left out."}`
	withKeys  = `"modifiers":{"type":"string","description":"Keys that are held meanwhile, joined by +."}`
	toPoint   = `"target":` + viewPoint
	viewPoint = `{"type":"object","description":"A point of what is seen of the page.","properties":{"type":{"type":"string","enum":["coordinate"]},"x":{"type":"integer","description":"Pixels from the left."},"y":{"type":"integer","description":"Pixels from the top."}},"required":["type","x","y"]}`
	toElement = `"target":{"type":"object","description":"An element of the page, by its reference from read_page or find.","properties":{"type":{"type":"string","enum":["ref"]},"ref":{"type":"string","description":"The reference, such as ref_7."}},"required":["type","ref"]}`
	toEither  = `"target":{"type":"object","description":"Where: a point of what is seen of the page, or an element by its reference from read_page or find.","properties":{"type":{"type":"string","enum":["coordinate","ref"]},"x":{"type":"integer","description":"For coordinate: pixels from the left."},"y":{"type":"integer","description":"For coordinate: pixels from the top."},"ref":{"type":"string","description":"For ref: the reference, such as ref_7."}},"required":["type"]}`
	direction = `"scroll_direction":{"type":"string","enum":["up","down","left","right"]}`
	forTime   = `"duration":{"type":"number","description":"How long, in seconds; 30 at most."}`
	region    = `"region":{"type":"array","items":{"type":"integer"},"description":"Left, top, right and bottom edge, in pixels."}`
	theKeys   = `"text":{"type":"string","description":"A key, or keys joined by +, such as ctrl+a."}`
	repeated  = `"repeat":{"type":"integer","description":"How often; once where it is left out."}`
	onScreen  = `"coordinate":{"type":"array","items":{"type":"integer"},"description":"Where, as x and y in pixels."}`
	orCursor  = `"coordinate":{"type":"array","items":{"type":"integer"},"description":"Where, as x and y in pixels; at the cursor where it is left out."}`
	keysHeld  = `"text":{"type":"string","description":"Keys that are held meanwhile, joined by +."}`
	typedText = `"text":{"type":"string","description":"The text."}`
)

// families are those that there are. Which members are off by themselves is the API's rule.
var families = []*family{
	{"browser", []member{
		{name: "navigate", description: "Goes to an address in a tab of a browser, or back, forward, or to the same page anew.", required: "url",
			properties: []string{`"url":{"type":"string","description":"The address, or back, forward or reload."}`, inTab}},
		{name: "list_tabs", description: "Lists the tabs that are open, each with its id, title and address."},
		{name: "new_tab", description: "Opens an empty tab and returns its id."},
		{name: "switch_tab", description: "Makes a tab the active one.", required: "tab_id", properties: []string{`"tab_id":{"type":"string"}`}},
		{name: "close_tab", description: "Closes a tab.", required: "tab_id", properties: []string{`"tab_id":{"type":"string"}`}},
		{name: "read_page", description: "Returns the elements of the page as a tree, with references by which other tools take them. A page that is too long is read in parts, by ref or with less depth.",
			properties: []string{
				`"filter":{"type":"string","enum":["interactive","all"],"description":"interactive: only what can be used; all: what is out of sight, too. All that is seen where it is left out."}`,
				`"depth":{"type":"integer","description":"How deep; 15 where it is left out."}`,
				`"ref":{"type":"string","description":"The element to read; the whole page where it is left out."}`, inTab}},
		{name: "get_page_text", description: "Returns the text of the page, of an article before anything else.", properties: []string{inTab}},
		{name: "read_console", off: true, description: "Returns what the page has written to its console since the last time.", properties: []string{inTab}},
		{name: "read_network", off: true, description: "Returns the requests that the page has made since the last time.", properties: []string{inTab}},
		{name: "find", description: "Finds elements of the page by a description in words, and returns references to them.", required: "query",
			properties: []string{`"query":{"type":"string","description":"What is looked for, such as: search field."}`, inTab}},
		{name: "form_input", description: "Sets the value of an element of a form: true or false for a box, an option for a choice, else a text.", required: "target value",
			properties: []string{toElement, `"value":{"description":"The value.","anyOf":[{"type":"string"},{"type":"number"},{"type":"boolean"}]}`, inTab}},
		{name: "file_upload", off: true, description: "Gives files to a file field. It takes paths, document_ids, or both.", required: "target",
			properties: []string{toElement, `"paths":{"type":"array","items":{"type":"string"},"description":"Files where the browser runs."}`,
				`"document_ids":{"type":"array","items":{"type":"string"},"description":"Files that were made ready."}`, inTab}},
		{name: "scroll_to", description: "Scrolls until an element is seen.", required: "target", properties: []string{toElement, inTab}},
		{name: "screenshot", description: "Returns a picture of what is seen of the page.", properties: []string{inTab}},
		{name: "zoom", description: "Returns a larger picture of a part of what is seen of the page.", required: "region", properties: []string{region, inTab}},
		{name: "left_click", description: "Clicks with the left button of the mouse.", required: "target", properties: []string{toEither, withKeys, inTab}},
		{name: "right_click", description: "Clicks with the right button of the mouse.", required: "target", properties: []string{toEither, withKeys, inTab}},
		{name: "middle_click", description: "Clicks with the middle button of the mouse.", required: "target", properties: []string{toEither, withKeys, inTab}},
		{name: "double_click", description: "Clicks twice.", required: "target", properties: []string{toEither, withKeys, inTab}},
		{name: "triple_click", description: "Clicks three times, which mostly selects a line or a paragraph.", required: "target", properties: []string{toEither, withKeys, inTab}},
		{name: "hover", description: "Moves the pointer to a place without a click.", required: "target", properties: []string{toEither, inTab}},
		{name: "left_click_drag", description: "Presses the button at one point, and lets go at another.", required: "from target", properties: []string{`"from":` + viewPoint, toPoint, inTab}},
		{name: "left_mouse_down", description: "Presses the left button of the mouse, until left_mouse_up.", required: "target", properties: []string{toPoint, inTab}},
		{name: "left_mouse_up", description: "Lets go of the left button of the mouse.", required: "target", properties: []string{toPoint, inTab}},
		{name: "mouse_move", description: "Moves the pointer.", required: "target", properties: []string{toPoint, inTab}},
		{name: "scroll", description: "Turns the wheel of the mouse at a point.", required: "scroll_direction target",
			properties: []string{direction, toPoint, `"scroll_amount":{"type":"integer","description":"Clicks of the wheel, 1 to 10; 3 where it is left out."}`, inTab}},
		{name: "type", description: "Types a text where the cursor is.", required: "text", properties: []string{typedText, inTab}},
		{name: "key", description: "Presses keys.", required: "text",
			properties: []string{`"text":{"type":"string","description":"A key, keys joined by +, such as ctrl+a, or several behind each other with spaces between."}`, repeated, inTab}},
		{name: "hold_key", description: "Holds keys for a while.", required: "text duration", properties: []string{theKeys, forTime, inTab}},
		{name: "wait", description: "Waits.", required: "duration", properties: []string{forTime, inTab}},
		{name: "javascript_exec", off: true, description: "Runs JavaScript in the page, and returns the value of its last expression; it is written without return.", required: "text",
			properties: []string{`"text":{"type":"string","description":"The code."}`, inTab}},
	}},
	{"computer", []member{
		{name: "screenshot", description: "Returns a picture of the screen."},
		{name: "zoom", description: "Returns a larger picture of a part of the screen, by its place in a picture of the whole.", required: "region", properties: []string{region}},
		{name: "left_click", description: "Clicks with the left button of the mouse.", properties: []string{orCursor, keysHeld}},
		{name: "right_click", description: "Clicks with the right button of the mouse.", properties: []string{orCursor, keysHeld}},
		{name: "middle_click", description: "Clicks with the middle button of the mouse.", properties: []string{orCursor, keysHeld}},
		{name: "double_click", description: "Clicks twice.", properties: []string{orCursor, keysHeld}},
		{name: "triple_click", description: "Clicks three times.", properties: []string{orCursor, keysHeld}},
		{name: "left_click_drag", description: "Presses the button at one point, and lets go at another.", required: "start_coordinate coordinate",
			properties: []string{`"start_coordinate":{"type":"array","items":{"type":"integer"},"description":"Where it begins, as x and y in pixels."}`, onScreen, keysHeld}},
		{name: "left_mouse_down", description: "Presses the left button of the mouse, until left_mouse_up."},
		{name: "left_mouse_up", description: "Lets go of the left button of the mouse."},
		{name: "mouse_move", description: "Moves the cursor.", required: "coordinate", properties: []string{onScreen}},
		{name: "cursor_position", description: "Returns where the cursor is."},
		{name: "scroll", description: "Turns the wheel of the mouse.", required: "scroll_direction scroll_amount",
			properties: []string{direction, `"scroll_amount":{"type":"integer","description":"Clicks of the wheel."}`, orCursor, keysHeld}},
		{name: "type", description: "Types a text.", required: "text", properties: []string{typedText}},
		{name: "key", description: "Presses a key, or keys together.", required: "text", properties: []string{theKeys, repeated}},
		{name: "hold_key", description: "Holds keys for a while.", required: "text duration", properties: []string{theKeys, `"duration":{"type":"number","description":"How long, in seconds."}`}},
		{name: "wait", description: "Waits.", required: "duration", properties: []string{`"duration":{"type":"number","description":"How long, in seconds."}`}},
	}},
}
