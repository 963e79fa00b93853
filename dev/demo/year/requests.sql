-- Flights that customers will ask about, with the label that becomes known later.
SELECT * FROM (
$examples
)
WHERE MOD(ABS(FARM_FINGERPRINT(flight_id)), 1000) < @permille
ORDER BY scheduled_departure
