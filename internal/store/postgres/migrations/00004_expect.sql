-- +goose Up

-- Ends the transaction where a statement did not find what its sender had known: the same may succeed with what is there now.
-- +goose StatementBegin
CREATE FUNCTION expect(got int8, wanted int8) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF got IS DISTINCT FROM wanted THEN
		RAISE serialization_failure USING MESSAGE = format('got %s, expected %s', got, wanted);
	END IF;
END $$;
-- +goose StatementEnd
