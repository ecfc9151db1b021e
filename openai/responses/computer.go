package responses

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

func computerMembers(o *rawjson.Object) ([]rawjson.Member, error) {
	actions, err := rawjson.Elements(o.Get("actions"))
	if err == nil && len(actions) == 0 {
		err = errors.New("a computer needs actions")
	}
	for i := range actions {
		if err == nil {
			actions[i], err = computerAction(actions[i])
		}
	}
	return []rawjson.Member{raw("actions", array(actions...)), raw("pending_safety_checks", empty)}, err
}

// computerArguments returns the actions of an item; models before had one each.
func computerArguments(item *rawjson.Object) *rawjson.Object {
	actions := item.Get("actions")
	if one := item.Get("action"); rawjson.IsNull(actions) && !rawjson.IsNull(one) {
		actions = array(one)
	}
	return &rawjson.Object{Members: []rawjson.Member{raw("actions", actions)}}
}

// computerTold returns a picture, as parts of content.
func computerTold(item *rawjson.Object) json.RawMessage {
	o, err := rawjson.ParseObject(item.Get("output"))
	if err != nil {
		return item.Get("output")
	}
	o.Set("type", rawjson.Quote("input_image"))
	return array(o.Bytes())
}

// computerAction returns an action at a computer with what its kind has to have.
func computerAction(action json.RawMessage) (json.RawMessage, error) {
	o, err := rawjson.ParseObject(action)
	if err != nil {
		return nil, err
	}
	kind := stringOf(o, "type")
	members := []rawjson.Member{text("type", kind)}
	numbers := func(names ...string) {
		for _, name := range names {
			n := o.Get(name)
			if rawjson.IsNull(n) && strings.HasPrefix(name, "scroll_") {
				n = json.RawMessage("0") // one way is enough
			}
			if _, ok := rawjson.Int(n); !ok {
				err = fmt.Errorf("%s needs %s", kind, name)
			}
			members = append(members, raw(name, n))
		}
	}
	keys := raw("keys", null)
	if texts(o.Get("keys")) {
		keys = raw("keys", o.Get("keys"))
	}
	switch kind {
	case "click":
		button := stringOf(o, "button")
		if rawjson.IsNull(o.Get("button")) {
			button = "left"
		}
		if !slices.Contains([]string{"left", "right", "wheel", "back", "forward"}, button) {
			return nil, errors.New("click needs a button")
		}
		members = append(members, text("button", button))
		numbers("x", "y")
		members = append(members, keys)
	case "double_click", "move":
		numbers("x", "y")
		members = append(members, keys)
	case "scroll":
		numbers("x", "y", "scroll_x", "scroll_y")
		members = append(members, keys)
	case "drag":
		points, failed := rawjson.Elements(o.Get("path"))
		if failed != nil || len(points) < 2 {
			return nil, errors.New("drag needs a path")
		}
		for _, point := range points {
			p, failed := rawjson.ParseObject(point)
			if failed != nil {
				return nil, failed
			}
			_, across := rawjson.Int(p.Get("x"))
			if _, down := rawjson.Int(p.Get("y")); !across || !down {
				return nil, errors.New("a point needs x and y")
			}
		}
		members = append(members, raw("path", o.Get("path")), keys)
	case "keypress":
		if rawjson.IsNull(keys.Value) {
			return nil, errors.New("keypress needs keys")
		}
		members = append(members, keys)
	case "type":
		if rawjson.Kind(o.Get("text")) != '"' {
			return nil, errors.New("type needs a text")
		}
		members = append(members, raw("text", o.Get("text")))
	case "screenshot", "wait":
	default:
		return nil, fmt.Errorf("there is no %q", kind)
	}
	return object(members...), err
}
