{{ config(materialized='view') }}
select name, count(*) as n from {{ ref('elders') }} group by name
