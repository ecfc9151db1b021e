package messages

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// A function is a tool that the client runs and whose schema the API knows, as a model
// is told of it that does not.
type function struct{ name, description, schema string }

// parameters returns the schema on one line.
func (f function) parameters() json.RawMessage {
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(f.schema)); err != nil {
		panic(err) // it stands below
	}
	return b.Bytes()
}

// clientRun returns the function that stands for a tool of a kind that clients run
// themselves. o is its entry.
func clientRun(kind string, o *rawjson.Object) (f function, ok bool) {
	switch {
	case strings.HasPrefix(kind, "bash_"):
		return bash, true
	case strings.HasPrefix(kind, "text_editor_"):
		f = textEditor
		if strings.HasPrefix(kind, "text_editor_20241022") || strings.HasPrefix(kind, "text_editor_20250124") {
			f = textEditorUndo
		}
		return f, true
	case strings.HasPrefix(kind, "memory_"):
		return memoryFiles, true
	case strings.HasPrefix(kind, "computer_"):
		f = computer
		wide, _ := rawjson.Int(o.Get("display_width_px"))
		high, _ := rawjson.Int(o.Get("display_height_px"))
		if wide > 0 && high > 0 {
			f.description += fmt.Sprintf(" The screen is %d pixels wide and %d high; (0, 0) is its top left corner.", wide, high)
		}
		return f, true
	}
	return f, false
}

var bash = function{"bash", "Runs a command in a shell that stays open between calls, and returns what it printed.", `{
	"type":"object","properties":{
		"command":{"type":"string","description":"The command. Needed unless restart is true."},
		"restart":{"type":"boolean","description":"True starts the shell anew in place of running a command."}
	}}`}

const editorTail = `,"description":"What to do."},
		"path":{"type":"string","description":"Absolute path of the file or directory."},
		"file_text":{"type":"string","description":"For create: the whole text of the new file."},
		"old_str":{"type":"string","description":"For str_replace: the text to be replaced. It has to be in the file exactly once."},
		"new_str":{"type":"string","description":"For str_replace: what takes its place; nothing if left out. For insert: the text to be inserted, where insert_text is not given."},
		"insert_line":{"type":"integer","description":"For insert: the line behind which the text goes; 0 is the beginning of the file."},
		"insert_text":{"type":"string","description":"For insert: the text."},
		"view_range":{"type":"array","items":{"type":"integer"},"description":"For view: the first and the last line to be shown, counted from 1; -1 is the end."}
	},"required":["command","path"]}`

var (
	textEditor = function{"str_replace_based_edit_tool", "Shows, creates and edits text files.",
		`{"type":"object","properties":{"command":{"type":"string","enum":["view","create","str_replace","insert"]` + editorTail}
	textEditorUndo = function{"str_replace_editor", "Shows, creates and edits text files.",
		`{"type":"object","properties":{"command":{"type":"string","enum":["view","create","str_replace","insert","undo_edit"]` + editorTail}
)

var memoryFiles = function{"memory", "Keeps notes in files below /memories, which are still there in later conversations. Look at what is there before you begin.", `{
	"type":"object","properties":{
		"command":{"type":"string","enum":["view","create","str_replace","insert","delete","rename"],"description":"What to do."},
		"path":{"type":"string","description":"Path of the file or directory, such as /memories/plan.md. For all but rename."},
		"view_range":{"type":"array","items":{"type":"integer"},"description":"For view: the first and the last line to be shown."},
		"file_text":{"type":"string","description":"For create: the whole text of the file."},
		"old_str":{"type":"string","description":"For str_replace: the text to be replaced."},
		"new_str":{"type":"string","description":"For str_replace: what takes its place."},
		"insert_line":{"type":"integer","description":"For insert: the line behind which the text goes; 0 is the beginning."},
		"insert_text":{"type":"string","description":"For insert: the text."},
		"old_path":{"type":"string","description":"For rename: the path as it is."},
		"new_path":{"type":"string","description":"For rename: the path as it is to be."}
	},"required":["command"]}`}

var computer = function{"computer", "Looks at a screen, and uses its mouse and keyboard.", `{
	"type":"object","properties":{
		"action":{"type":"string","enum":["screenshot","left_click","right_click","middle_click","double_click","triple_click","mouse_move","left_click_drag","left_mouse_down","left_mouse_up","cursor_position","scroll","key","hold_key","type","wait","zoom"],"description":"What to do."},
		"coordinate":{"type":"array","items":{"type":"integer"},"description":"Where, as x and y in pixels."},
		"start_coordinate":{"type":"array","items":{"type":"integer"},"description":"For left_click_drag: where it begins."},
		"text":{"type":"string","description":"For type: the text. For key and hold_key: the key, or keys joined by +. For clicks and scroll: keys held meanwhile."},
		"duration":{"type":"number","description":"For hold_key and wait: how long, in seconds."},
		"scroll_direction":{"type":"string","enum":["up","down","left","right"],"description":"For scroll."},
		"scroll_amount":{"type":"integer","description":"For scroll: how many clicks of the wheel."},
		"region":{"type":"array","items":{"type":"integer"},"description":"For zoom: left, top, right and bottom edge of the part to be shown."}
	},"required":["action"]}`}
