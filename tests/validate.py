"""Holds lines on standard input against a schema: validate.py SCHEMA [DEFINITION]. Ends with 0 when all fit, 1 and the first that does not."""
import json
import sys

import jsonschema

schema = json.load(open(sys.argv[1], encoding="utf-8"))
if len(sys.argv) > 2:
    schema = {"$schema": schema["$schema"], "$defs": schema["$defs"], "$ref": "#/$defs/" + sys.argv[2]}
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)
count = 0
for line in sys.stdin:
    count += 1
    error = jsonschema.exceptions.best_match(validator.iter_errors(json.loads(line)))
    if error:
        sys.exit("line %d: %s: %s" % (count, error.json_path, error.message[:300]))
if count == 0:
    sys.exit("nothing to hold against the schema")
