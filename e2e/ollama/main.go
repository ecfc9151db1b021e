// Command ollama sends function tools through the types with which Ollama reads
// them, and says which lost something on the way. It reads a JSON array of tools
// from the file that is named; without one it answers on its standard input and
// output, for dragoman prove.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"

	"github.com/ollama/ollama/api"
)

func main() {
	var err error
	if len(os.Args) > 1 {
		err = run(os.Args[1])
	} else {
		err = answer(os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(file string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var tools []json.RawMessage
	if err := json.Unmarshal(b, &tools); err != nil {
		return err
	}
	facts := struct {
		Judged int
		Lost   []string
	}{Judged: len(tools)}
	for _, sent := range tools {
		var tool api.Tool
		if err := json.Unmarshal(sent, &tool); err != nil {
			facts.Lost = append(facts.Lost, fmt.Sprintf("%.80s: %v", sent, err))
			continue
		}
		read, err := json.Marshal(tool)
		if err != nil {
			return err
		}
		var before, after any
		if err := json.Unmarshal(sent, &before); err != nil {
			return err
		}
		if err := json.Unmarshal(read, &after); err != nil {
			return err
		}
		if where := lost(before, after, ""); where != "" {
			facts.Lost = append(facts.Lost, tool.Function.Name+where)
		}
	}
	return json.NewEncoder(os.Stdout).Encode(facts)
}

// lost returns the place of something in before that is not in after; "" for
// nothing. A type that was text may have become a list of one.
func lost(before, after any, path string) string {
	switch b := before.(type) {
	case map[string]any:
		a, ok := after.(map[string]any)
		if !ok {
			return path
		}
		for name, value := range b {
			if _, ok := a[name]; !ok {
				if empty(value) {
					continue
				}
				return path + "/" + name
			}
			if where := lost(value, a[name], path+"/"+name); where != "" {
				return where
			}
		}
		return ""
	case string:
		if list, ok := after.([]any); ok && len(list) == 1 && list[0] == b {
			return ""
		}
	}
	if reflect.DeepEqual(before, after) {
		return ""
	}
	if b, ok := before.([]any); ok {
		a, _ := after.([]any)
		if len(a) != len(b) {
			return path
		}
		for i := range b {
			if where := lost(b[i], a[i], fmt.Sprintf("%s/%d", path, i)); where != "" {
				return where
			}
		}
		return ""
	}
	return path
}

// empty reports whether a value says nothing that a model would miss.
func empty(value any) bool {
	v := reflect.ValueOf(value)
	return !v.IsValid() || v.IsZero() || (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0
}
